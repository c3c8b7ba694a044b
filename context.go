package ctxdir

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"
)

// Context is an open context. Several goroutines may use it. It shows the state of its last write, or of the last
// [Context.Refresh].
type Context struct {
	e      *engine.Context
	shared bool // by calls of [Store.Use]
}

func newContext(e *engine.Context, err error) (*Context, error) {
	if err != nil {
		return nil, err
	}
	return &Context{e: e}, nil
}

// Close waits for running operations and pending message files, seals a log if it is long, and releases the context. Later
// calls return [ErrClosed], except those that need no file, such as [Context.Metadata]; closing again does nothing. An
// iteration over messages ends with ErrClosed, so its body may close the context; a function given to [Context.Update]
// must not. Messages that were read before keep their bodies, if their payloads are in blobs. If a message file cannot
// be made, Close says so; the log has the message, and the next writer makes the file.
func (c *Context) Close() error {
	if c.shared {
		return nil
	}
	return c.e.Close()
}

// ID returns the id of the context.
func (c *Context) ID() uuid.UUID { return c.e.ID() }

// Metadata returns a copy of the metadata.
func (c *Context) Metadata() *Metadata {
	m := metadata(c.e.Metadata())
	m.Problem = c.e.Problem()
	return m
}

// Summary describes the context as [Store.List] does.
func (c *Context) Summary() Summary {
	s := summary(listing.Summarise(c.e))
	if s.Problem == nil {
		s.Problem = c.e.Problem()
	}
	s.Legacy = string(c.e.Legacy())
	return s
}

// CommitEdits commits what people changed in the files of messages, as a repair does, and returns how many there were. It
// looks at size and time of each file. The versions before go to the trash.
func (c *Context) CommitEdits(ctx context.Context) (int, error) { return c.e.CommitEdits(ctx) }

// Refresh reads what other processes committed. Later reads also look for edits by hand; without a Refresh, reading a
// message again does no I/O.
func (c *Context) Refresh(ctx context.Context) error { return c.e.Refresh(ctx) }

// Update changes title, labels, config, state, parent, unknown members, and the system prompts and unknown members of
// branches. f gets the newest metadata, under the lock. Update ignores what f does to ids, kind, branch names, revision
// and times: other methods change those, or nothing does. An UpdatedAt that f moves forward, but not into the future, is the
// time of the change. Update takes a Sequence.
func (c *Context) Update(ctx context.Context, f func(m *Metadata) error, opts ...WriteOptions) error {
	return c.e.Update(ctx, updateOf(f), writeOptions(opts)...)
}

// Active returns the active branch.
func (c *Context) Active() *Branch { return &Branch{c.e.Active()} }

// Branch returns the branch with a name. It fails with [ErrNotExist]. With the id of a line in place of a name, it returns
// what a branch that points at the line would show, for reading only: so the messages of a line without a name, such as
// one in the trash, can be read.
func (c *Context) Branch(name string) (*Branch, error) { return newBranch(c.e.Branch(name)) }

// Branches describes the branches in order of creation. From and Shared describe the tree of branches: two branches
// have as many messages in common as the smallest Shared on the path between them. Branches reads the index, but no
// message.
func (c *Context) Branches(ctx context.Context) ([]BranchInfo, error) {
	infos, err := c.e.Branches(ctx)
	if err != nil {
		return nil, err
	}
	return branchInfos(infos), nil
}

// NewBranch adds a branch without messages and without a system prompt. It does not switch to the branch. It fails with
// [ErrInvalid] or [ErrExist].
func (c *Context) NewBranch(ctx context.Context, name string) (*Branch, error) {
	return newBranch(c.e.NewBranch(ctx, name))
}

// Switch makes a branch the active one. It fails with [ErrInvalid] for a branch with a kind, such as that of moments.
func (c *Context) Switch(ctx context.Context, branch string) error {
	return c.e.Switch(ctx, branch)
}

// Flush waits until every message of the context has its file. An append returns when its message is durable in a
// log, and the message file follows when appends pause, after a quarter of a second at the latest unless the disk is
// busy. This library never needs the file; other programs see all messages after Flush. Close flushes too. Flush also
// writes the message files that a killed process had not written yet. If it fails, a file is missing, for example on a
// full disk: the message is safe, and Flush can be called again.
func (c *Context) Flush(ctx context.Context) error { return c.e.Flush(ctx) }
