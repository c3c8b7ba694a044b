package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Folder is a store as a peer. It commits edits by hand before it describes a context, so that they travel. Close the store
// after it.
type Folder struct {
	s    *ctxdir.Store
	disk func() (vfs.FS, error) // the folder of the store

	sees func(m *ctxdir.Metadata) bool // whether a context is there for the peer; nil for all
	part string                        // names the contexts that are; empty for all
}

// NewFolder returns an open store as a peer.
func NewFolder(s *ctxdir.Store) *Folder {
	return &Folder{s: s, disk: func() (vfs.FS, error) { return vfs.OS(s.Info().Path) }}
}

// Limit lets the peer see some of the contexts, and nothing of others: neither their removals, nor which payloads the store
// has. It is then another store for the peer, with an id that depends on part. The peer must not be able to change anything.
func (f *Folder) Limit(part string, sees func(m *ctxdir.Metadata) bool) { f.part, f.sees = part, sees }

// use is [ctxdir.Store.Use] for a context that the peer may see.
func (f *Folder) use(ctx context.Context, id uuid.UUID, do func(c *ctxdir.Context) error) error {
	return f.s.Use(ctx, id, func(c *ctxdir.Context) error {
		if f.sees != nil && !f.sees(c.Metadata()) {
			return &ctxdir.Error{Op: "open", Context: id, Err: ctxdir.ErrNotExist}
		}
		return do(c)
	})
}

// Store implements [Peer].
func (f *Folder) Store(context.Context) (uuid.UUID, error) {
	if f.sees != nil {
		return uuid.NewSHA1(f.s.Info().ID, []byte(f.part)), nil
	}
	return f.s.Info().ID, nil
}

// Contexts implements [Peer].
func (f *Folder) Contexts(ctx context.Context, known map[uuid.UUID]string) ([]State, error) {
	var changed []State
	var all []ctxdir.Summary
	missing := maps.Clone(known)
	for c, err := range f.s.List(ctx, ctxdir.ListOptions{Kind: "*", Order: ctxdir.OrderCreated}) {
		if err != nil {
			return nil, err
		}
		if c.Legacy == "" && (f.sees == nil || f.sees(&ctxdir.Metadata{Labels: c.Labels})) {
			all = append(all, c)
		}
	}
	if err := f.commitEdits(ctx, all); err != nil {
		return nil, err
	}
	for _, c := range all {
		was, is := known[c.ID]
		delete(missing, c.ID)
		if !is || was != c.Commit || c.Commit == "" {
			changed = append(changed, State{ID: c.ID, Commit: c.Commit})
		}
	}
	if len(missing) == 0 {
		return changed, nil
	}
	ids := slices.SortedFunc(maps.Keys(missing), compareIDs)
	removed, err := f.removed(ctx, ids)
	for i := range removed {
		changed = append(changed, State{ID: ids[i], Removed: removed[i]})
	}
	return changed, err
}

// A look for edits by hand, which no commit tells of, takes about as many files as can be looked at in 10 ms. The bound is a
// number of files, so that what it finds does not depend on the load of the machine.
const (
	editsBudget = 5000 // files
	editsOpen   = 50   // as many cost as much as opening a context
)

// commitEdits commits edits by hand in some contexts, which it chooses at random, and updates their commits. An edit in a
// context that changed otherwise is found anyway: see head.
func (f *Folder) commitEdits(ctx context.Context, all []ctxdir.Summary) error {
	budget := int64(editsBudget)
	for n, i := range rand.Perm(len(all)) {
		c := &all[i]
		if n > 0 && budget <= 0 {
			break
		}
		budget -= editsOpen + c.Messages
		err := f.s.Use(ctx, c.ID, func(of *ctxdir.Context) error {
			n, err := of.CommitEdits(ctx)
			if n > 0 {
				c.Commit = of.Summary().Commit
			}
			return err
		})
		if errors.Is(err, ctxdir.ErrReadOnly) || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil // heads say what cannot be read
}

// removed says which contexts are in the trash, or were removed for good.
func (f *Folder) removed(ctx context.Context, ids []uuid.UUID) ([]bool, error) {
	if f.sees != nil {
		return make([]bool, len(ids)), nil
	}
	there := map[uuid.UUID]bool{}
	for item, err := range f.s.Trash(ctx) {
		if err != nil {
			return nil, err
		}
		if item.Kind == ctxdir.TrashContext && item.Problem == nil {
			there[item.Context] = true
		}
	}
	purged, err := f.s.Purged()
	if err != nil {
		return nil, err
	}
	removed := make([]bool, len(ids))
	for i, id := range ids {
		_, gone := purged[id]
		removed[i] = gone || there[id]
	}
	return removed, nil
}

func compareIDs(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }

// Heads implements [Peer].
func (f *Folder) Heads(ctx context.Context, of []HeadRequest) ([]Head, error) {
	heads := make([]Head, len(of))
	for i, r := range of {
		heads[i].Err = f.use(ctx, r.ID, func(c *ctxdir.Context) (err error) {
			heads[i], err = f.head(ctx, c, r.Since)
			return err
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// head describes a context. What it shows is at least as new as its commit.
func (f *Folder) head(ctx context.Context, c *ctxdir.Context, since string) (h Head, err error) {
	if _, err := c.CommitEdits(ctx); err != nil && !errors.Is(err, ctxdir.ErrReadOnly) {
		return h, err
	}
	s := c.Summary()
	if s.Problem != nil {
		return h, s.Problem
	}
	h.Commit, h.Sequence = s.Commit, s.Sequence
	if h.Meta, err = metaOf(ctx, c); err != nil {
		return h, err
	}
	if h.Branches, err = branches(ctx, c); err != nil {
		return h, err
	}
	if since != "" {
		h.Changed, err = changes(ctx, c, since, func(*ctxdir.Row) bool { return true })
		if h.Continues = err == nil; h.Continues || !errors.Is(err, ctxdir.ErrNotExist) {
			return h, err
		}
	}
	h.Changed, err = changes(ctx, c, "", func(r *ctxdir.Row) bool { return r.Erased })
	return h, err
}

// changes returns those of the rows that changed since a commit, erased ones too, which are wanted.
func changes(
	ctx context.Context, c *ctxdir.Context, since string, wanted func(*ctxdir.Row) bool,
) (rows []ctxdir.Row, err error) {
	_, seq := c.Changes(ctx, since)
	for r, err := range seq {
		if errors.Is(err, ctxdir.ErrErased) { // the rows of what was erased came before
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if wanted(&r) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func branches(ctx context.Context, c *ctxdir.Context) ([]Branch, error) {
	infos, err := c.Branches(ctx)
	all := make([]Branch, len(infos))
	for i, b := range infos {
		all[i] = Branch{b.Name, b.Lines}
	}
	return all, err
}

// Rows implements [Peer].
func (f *Folder) Rows(ctx context.Context, of []Range) ([][]Row, error) {
	all := make([][]Row, len(of))
	for i, r := range of {
		err := f.inLine(ctx, r.ID, r.Line, func(b *ctxdir.Branch) error {
			for row, err := range b.Rows(ctx, r.From, r.To) {
				if err != nil {
					return err
				}
				all[i] = append(all[i], Row{Row: row})
			}
			if !r.Sums {
				return nil
			}
			at := 0
			for m, err := range b.Messages(ctx, r.From, r.To) {
				if err != nil {
					return err
				}
				for at < len(all[i]) && all[i][at].Position < m.Position {
					at++
				}
				if at < len(all[i]) && m.Unavailable == nil {
					all[i][at].Sum = max(xxhash.Sum64(slices.Concat(m.Stored, m.References)), 1)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// inLine calls do with what a branch that points at a line would show.
func (f *Folder) inLine(ctx context.Context, id, line uuid.UUID, do func(*ctxdir.Branch) error) error {
	return f.use(ctx, id, func(c *ctxdir.Context) error {
		b, err := c.Branch(line.String())
		if err != nil {
			return err
		}
		return do(b)
	})
}

// errEnough ends a read.
var errEnough = errors.New("enough")

// Read implements [Peer].
func (f *Folder) Read(ctx context.Context, of []Range, size int64) (all []Message, err error) {
	for i, r := range of {
		err := f.inLine(ctx, r.ID, r.Line, func(b *ctxdir.Branch) error {
			for m, err := range b.Messages(ctx, r.From, r.To) {
				if err != nil {
					return err
				}
				if size <= 0 && len(all) > 0 {
					return errEnough
				}
				x, err := messageOf(m)
				if err != nil {
					return err
				}
				x.Of = i
				size -= int64(len(x.Envelope)) + messageOverhead
				all = append(all, x)
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// messageOverhead is what a message counts beside its envelope, in bytes.
const messageOverhead = 64

func messageOf(m *ctxdir.Message) (Message, error) {
	x := Message{Position: m.Position, ID: m.ID, Envelope: m.Envelope(), Erased: errors.Is(m.Unavailable, ctxdir.ErrErased)}
	if x.Envelope == nil {
		return x, nil
	}
	payloads, err := m.Payloads()
	for _, p := range payloads {
		if p.Problem == "" && !slices.Contains(x.Payloads, p.SHA256) {
			x.Payloads = append(x.Payloads, p.SHA256)
		}
	}
	return x, err
}

// Have implements [Peer].
func (f *Folder) Have(ctx context.Context, sums []string) ([]bool, error) {
	have := make([]bool, len(sums))
	if f.sees != nil {
		return have, nil
	}
	for i, sum := range sums {
		r, _, err := f.s.OpenPayload(ctx, sum)
		if err == nil {
			have[i] = true
			_ = r.Close()
		}
	}
	return have, ctx.Err()
}

// Get implements [Peer].
func (f *Folder) Get(ctx context.Context, of []PayloadOf, do func(sum string, size int64, r io.Reader) error) error {
	for _, p := range of {
		r, size, err := f.open(ctx, p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ctxdir.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		err = do(p.Sum, size, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// open opens a payload: the log has it if the message was appended a moment ago, and else a blob.
func (f *Folder) open(ctx context.Context, p PayloadOf) (r io.ReadCloser, size int64, err error) {
	if f.sees == nil {
		if r, size, err = f.s.OpenPayload(ctx, p.Sum); !errors.Is(err, fs.ErrNotExist) {
			return r, size, err
		}
	}
	err = f.inLine(ctx, p.ID, p.Line, func(b *ctxdir.Branch) error {
		m, err := b.Message(ctx, p.Message)
		if err != nil {
			return err
		}
		payloads, err := m.Payloads()
		if err != nil {
			return err
		}
		for _, x := range payloads {
			if x.SHA256 == p.Sum && x.Problem == "" {
				r, size, err = m.Open(x)
				return err
			}
		}
		return fmt.Errorf("%w: payload %s of message %s", fs.ErrNotExist, p.Sum, p.Message)
	})
	return r, size, err
}
