package engine

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Branch is a branch of an open context, by its name. After a rewind it means the rewound branch. After the branch is
// renamed or removed, operations fail with [ErrNotExist].
type Branch struct {
	c    *Context
	name string
}

// Active returns the active branch.
func (c *Context) Active() *Branch { return &Branch{c, c.Current().ActiveBranch} }

// Branch returns the branch with this name. It fails with [ErrNotExist]. The id of a line in place of a name returns what
// a branch that points at the line would show, for reading.
func (c *Context) Branch(name string) (*Branch, error) {
	if _, err := lineOf(c.Current(), name); err != nil {
		return nil, Wrap(Error{Op: "open", Context: c.Dir.ID, Branch: name}, err)
	}
	return &Branch{c, name}, nil
}

// lineOf returns the line at which the branch of this name points, or the line with this id.
func lineOf(m *Metadata, name string) (uuid.UUID, error) {
	b, err := branch.Get(m, name)
	if err == nil {
		return b.Line, nil
	}
	if id, ok := ctxfolder.ParseID(name); ok {
		if _, ok := m.Line(id); ok {
			return id, nil
		}
	}
	return uuid.Nil, err
}

// Context returns the branch's context.
func (b *Branch) Context() *Context { return b.c }

// Name returns the branch's name.
func (b *Branch) Name() string { return b.name }

// Branches describes the branches in order of creation.
func (c *Context) Branches(ctx context.Context) ([]BranchInfo, error) {
	infos, err := Use(c, func() ([]BranchInfo, error) { return c.branches(ctx) })
	return infos, Wrap(Error{Op: "list branches", Context: c.Dir.ID}, err)
}

func (c *Context) branches(ctx context.Context) ([]BranchInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m := c.Current()
	all, _, err := c.Index.AllCounts()
	if err != nil {
		return nil, err
	}
	infos := make([]BranchInfo, 0, len(m.Branches))
	for i := range m.Branches {
		info, err := DescribeBranch(m, &m.Branches[i], all)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, relateBranches(m, infos)
}

// Info describes the branch.
func (b *Branch) Info(ctx context.Context) (BranchInfo, error) {
	infos, err := b.c.Branches(ctx)
	if err != nil {
		return BranchInfo{}, err
	}
	for _, i := range infos {
		if i.Name == b.name {
			return i, nil
		}
	}
	return BranchInfo{}, Wrap(Error{Op: "describe", Context: b.c.Dir.ID}, fmt.Errorf("%w: branch %q", ErrNotExist, b.name))
}

// NewBranch adds an empty branch. It fails with [ErrInvalid] or [ErrExist].
func (c *Context) NewBranch(ctx context.Context, name string, attrs ...ctxfolder.Member) (*Branch, error) {
	return &Branch{c, name}, c.one(ctx, "new branch", name, func(tx *Tx) error { return tx.NewBranch(name, attrs...) })
}

// Fork adds a branch that begins with the first at messages of this one. It copies nothing, reads no message, and does
// not switch. It fails with [ErrInvalid], [ErrExist] or [ErrPosition].
func (b *Branch) Fork(ctx context.Context, name string, at int64, attrs ...ctxfolder.Member) (*Branch, error) {
	return &Branch{b.c, name}, b.c.one(ctx, "fork", name, func(tx *Tx) error { return tx.Fork(name, b.name, at, attrs...) })
}

// Rewind makes the branch show only its first to messages. The others stay on the line that loses the name: other
// branches still show them, and for the grace period the trash lists that line.
func (b *Branch) Rewind(ctx context.Context, to int64) error {
	return b.c.one(ctx, "rewind", b.name, func(tx *Tx) error { return tx.Rewind(b.name, to) })
}

// Switch makes a branch the active branch.
func (c *Context) Switch(ctx context.Context, name string) error {
	return c.one(ctx, "switch", name, func(tx *Tx) error { return tx.Switch(name) })
}

// Remove removes a branch's name. Its messages stay for the branches that show them. The others stay for the grace
// period, in which the trash lists the branch. It fails with [ErrActive] for the active branch.
func (c *Context) Remove(ctx context.Context, name string) error {
	return c.one(ctx, "remove", name, func(tx *Tx) error { return tx.Remove(name) })
}

// Rename renames a branch. The folder of its line keeps its name.
func (c *Context) Rename(ctx context.Context, name, to string) error {
	return c.one(ctx, "rename", name, func(tx *Tx) error { return tx.Rename(name, to) })
}

// length returns the number of messages that a branch shows.
func (c *Context) length(m *Metadata, name string) (int64, error) {
	line, err := lineOf(m, name)
	if err != nil {
		return 0, err
	}
	return c.End(m, line)
}

// Spans returns where the messages at the positions [from, to) are.
func (b *Branch) Spans(from, to int64) ([]loader.Span, error) {
	return Use(b.c, func() ([]loader.Span, error) { return b.spans(max(from, 0), to) })
}

// spans resolves positions of a branch to the lines that own them. A negative from counts from the end.
func (b *Branch) spans(from, to int64) ([]loader.Span, error) {
	m := b.c.Current()
	line, err := lineOf(m, b.name)
	if err != nil {
		return nil, err
	}
	end, err := b.c.End(m, line)
	if err != nil {
		return nil, err
	}
	if from < 0 {
		from = max(end+from, 0)
	}
	segments, err := branch.Segments(m, line, from, min(to, end))
	if err != nil {
		return nil, err
	}
	spans := make([]loader.Span, len(segments))
	for i, s := range segments {
		l, _ := m.Line(s.Line)
		spans[i] = loader.Span{Line: s.Line, Folder: l.Folder, From: s.From, To: s.To}
	}
	return spans, nil
}

func (b *Branch) fail(op string, err error) error {
	return Wrap(Error{Op: op, Context: b.c.Dir.ID, Branch: b.name}, err)
}
