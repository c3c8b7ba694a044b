// Package importing stores histories of other tools: it is a store in the form that package importer takes, and the cache of
// the histories that the store holds completely.
package importing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/google/uuid"
)

// importsView is the view of what imports know, in [engine.DerivedFolder].
const importsView = "imports"

// Store is an open store in the form that package importer takes: importer.Import(ctx, New(s), path, …) stores the history
// of another tool. Its imports of the same process share what they know, so a program makes one for each open store.
type Store struct {
	s    *engine.Store
	left importRuns
}

// New returns a store for imports.
func New(s *engine.Store) *Store {
	s.OnForget(importsView, func(context.Context, []uuid.UUID) error { return nil }) // the file has no text
	return &Store{s: s}
}

// Open implements [importer.Store].
func (i *Store) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	c, err := i.s.Context(ctx, info.ID)
	if errors.Is(err, engine.ErrNotExist) {
		m := engine.Metadata{ID: info.ID}
		origin.Describe(&m, info, false)
		c, err = i.s.Create(ctx, m)
		if errors.Is(err, engine.ErrExist) { // another import of the same history made it
			c, err = i.s.Context(ctx, info.ID)
		}
	}
	if err != nil {
		return nil, err
	}
	return &conversation{c: c, of: i}, nil
}

// conversation is a context in the form that package importer takes.
type conversation struct {
	of    *Store
	c     *engine.Context
	found journal.Position        // the commit at which the import found the context
	lines map[string]importedLine // by branch
}

func (v *conversation) Close() error {
	v.of.left.advance(v.c.Dir.ID, v.found, v.left(context.Background()))
	return v.c.Close()
}

func (v *conversation) Branches(ctx context.Context) ([]importer.Branch, error) {
	all, err := v.branches(ctx)
	return all, engine.Wrap(engine.Error{Op: "list the branches", Context: v.c.ID()}, err)
}

func (v *conversation) branches(ctx context.Context) ([]importer.Branch, error) {
	if err := v.c.Refresh(ctx); err != nil {
		return nil, err
	}
	var err error
	if v.found, err = v.c.Index.At(); err != nil {
		return nil, err
	}
	m := v.c.Current()
	var out []importer.Branch
	for _, b := range m.Branches {
		end, err := v.c.End(m, b.Line)
		if err != nil {
			return nil, err
		}
		lines, err := branch.Lines(m, b.Line, end)
		if err != nil {
			return nil, err
		}
		slices.Reverse(lines)
		spans := make([]importer.Span, len(lines))
		for i, l := range lines {
			spans[i] = importer.Span{Line: l.Line, To: l.To}
		}
		out = append(out, importer.Branch{Name: b.Name, Spans: spans})
		v.holds(b.Name, end)
		v.lines[b.Name] = importedLine{b.Line, end}
	}
	return out, nil
}

// comparedBytes bounds the stored messages that are in memory at once for a comparison.
const comparedBytes = 8 << 20

func (v *conversation) Messages(ctx context.Context, name string, from, to int64) ([]importer.Record, error) {
	b, err := v.c.Branch(name)
	if err != nil {
		return nil, err
	}
	var out []importer.Record
	size := 0
	for m, err := range b.From(ctx, from) {
		if err != nil {
			return nil, err
		}
		r := importer.Record{ID: m.ID}
		if m.Unavailable == nil {
			if r.Body, err = m.Body(ctx); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
		if size += len(r.Body); size >= comparedBytes || int64(len(out)) >= to-from {
			break
		}
	}
	return out, nil
}

func (v *conversation) Fork(ctx context.Context, name, from string, at int64, attrs map[string]json.RawMessage) error {
	var members []ctxfolder.Member
	for _, k := range slices.Sorted(maps.Keys(attrs)) {
		members = append(members, ctxfolder.Member{Key: k, Value: attrs[k]})
	}
	if from == "" {
		_, err := v.c.NewBranch(ctx, name, members...)
		return changedMeanwhile(err)
	}
	b, err := v.c.Branch(from)
	if err == nil {
		_, err = b.Fork(ctx, name, at, members...)
	}
	return changedMeanwhile(err)
}

func (v *conversation) Append(ctx context.Context, name string, at int64, records []importer.Record) error {
	b, err := v.c.Branch(name)
	if err != nil {
		return err
	}
	drafts := make([]engine.Draft, len(records))
	for i, r := range records {
		drafts[i] = engine.Draft{
			ID: r.ID, OriginID: r.OriginID, Role: r.Role, Type: r.Type, CreatedAt: r.CreatedAt, CopyOf: r.CopyOf, Repeats: r.Repeats, Body: r.Body,
		}
	}
	results, err := b.AppendBatch(ctx, drafts, engine.ExactlyAt(at))
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
		if err == nil && r.Existed {
			err = fmt.Errorf("%w: message %s is at position %d already", engine.ErrConflict, r.ID, r.Position)
		}
	}
	if err == nil {
		v.holds(name, at+int64(len(records)))
	}
	return changedMeanwhile(err)
}

// changedMeanwhile marks the errors that another writer of the same context causes.
func changedMeanwhile(err error) error {
	if errors.Is(err, engine.ErrPosition) || errors.Is(err, engine.ErrConflict) || errors.Is(err, engine.ErrExist) {
		return fmt.Errorf("%w: %w", importer.ErrChanged, err)
	}
	return err
}

func (v *conversation) Replace(ctx context.Context, name string, records []importer.Record) error {
	_, err := v.c.Commit(ctx, func(tx *engine.Tx) error {
		for _, r := range records {
			d := engine.Draft{ID: r.ID, Role: r.Role, Type: r.Type, CreatedAt: r.CreatedAt, CopyOf: r.CopyOf, Repeats: r.Repeats, Body: r.Body}
			if err := tx.Replace(name, r.ID, d, engine.Shared()); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (v *conversation) Find(ctx context.Context, id uuid.UUID) (name string, at int64, ok bool, err error) {
	m := v.c.Current()
	for _, b := range m.Branches {
		place, err := engine.Use(v.c, func() (engine.Place, error) { return v.c.Find(m, b.Line, id) })
		switch {
		case err == nil:
			// The branch that owns the message is a better name than one that inherits it, if it has one.
			for _, own := range m.Branches {
				if own.Line == place.Span.Line {
					return own.Name, place.Entry.Position, true, nil
				}
			}
			return b.Name, place.Entry.Position, true, nil
		case !errors.Is(err, engine.ErrNotExist):
			return "", 0, false, engine.Wrap(engine.Error{Op: "find", Context: v.c.ID(), ID: id}, err)
		}
		if err := ctx.Err(); err != nil {
			return "", 0, false, err
		}
	}
	return "", 0, false, nil
}

func (v *conversation) Times() (stateAt, updatedAt time.Time) {
	t := origin.TimesOf(v.c.Current())
	return t.State, t.Updated
}

func (v *conversation) Describe(ctx context.Context, info importer.Info, changed bool) error {
	if m := v.c.Metadata(); !origin.Describe(m, info, changed) {
		return nil
	}
	return v.c.Update(ctx, func(m *engine.Metadata) error {
		origin.Describe(m, info, changed)
		return nil
	})
}

func (v *conversation) SetActive(ctx context.Context, name string) error {
	if v.c.Current().ActiveBranch == name {
		return nil
	}
	return v.c.Switch(ctx, name)
}

var (
	_ importer.Store        = (*Store)(nil)
	_ importer.Conversation = (*conversation)(nil)
)

// importRuns are the commits at which imports of this process left contexts.
type importRuns struct {
	mu  sync.Mutex
	all map[uuid.UUID]importRun
}

// importRun is the commit at which a run of imports left a context. A run ends when another writer changes the
// context: then the histories of the run have to be read again.
type importRun struct {
	run int
	at  journal.Position // zero if it is not known
}

func (i *importRuns) of(id uuid.UUID) importRun {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.all[id]
}

// advance notes that an import found a context at one commit, and left it at another one.
func (i *importRuns) advance(id uuid.UUID, from, to journal.Position) {
	i.mu.Lock()
	defer i.mu.Unlock()
	is := i.all[id]
	if is.at != from || is.at.Seq == 0 || to.Seq == 0 {
		is.run++
	}
	is.at = to
	if i.all == nil {
		i.all = map[uuid.UUID]importRun{}
	}
	i.all[id] = is
}

// join returns the run that left a context at a commit.
func (i *importRuns) join(id uuid.UUID, at journal.Position) int {
	if i.of(id).at != at {
		i.advance(id, journal.Position{}, at)
	}
	return i.of(id).run
}

// left returns the commit at which the import leaves the context, zero if another writer changed a branch of it
// meanwhile, other than by appending: then the store may lack records of the history.
func (v *conversation) left(ctx context.Context) (none journal.Position) {
	if v.lines == nil || v.c.Refresh(ctx) != nil {
		return none
	}
	at, err := v.c.Index.At()
	if err != nil {
		return none
	}
	m := v.c.Current()
	for name, was := range v.lines {
		i := slices.IndexFunc(m.Branches, func(b ctxfolder.Branch) bool { return b.Name == name })
		if i < 0 || was.line != uuid.Nil && m.Branches[i].Line != was.line {
			return none
		}
		if end, err := v.c.End(m, m.Branches[i].Line); err != nil || end < was.length {
			return none
		}
	}
	if again, err := v.c.Index.At(); err != nil || again != at {
		return none
	}
	return at
}

// importedLine is what a branch must show after the import.
type importedLine struct {
	line   uuid.UUID // uuid.Nil if the import made the branch
	length int64
}

// holds notes that a branch shows so many messages.
func (v *conversation) holds(name string, length int64) {
	if v.lines == nil {
		v.lines = map[string]importedLine{}
	}
	v.lines[name] = importedLine{v.lines[name].line, length}
}
