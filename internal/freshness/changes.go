// Package freshness tells whether what was derived from a context, such as a list or an index, is still current, and what
// was committed since.
package freshness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// state is a context at one look. Every commit changes its files; an edit of a message by hand does not.
type state struct {
	Seq   uint64       `json:"seq"`
	Chain uint64       `json:"chain"`
	Log   string       `json:"log,omitempty"` // the newest one
	Files [3]FileState `json:"files"`         // the folder, metadata.json and the log
	At    int64        `json:"at"`            // when they were looked at, nanoseconds since 1970
}

// CommitOf names a log position, and so all commits up to it: two histories that name the same one have the same commits.
func CommitOf(at journal.Position) string { return fmt.Sprintf("%d-%016x", at.Seq, at.Chain) }

// commit returns the log position that a state, or a name of [CommitOf], has.
func commit(since string) (at journal.Position, err error) {
	if strings.HasPrefix(since, "{") {
		var was state
		err = json.Unmarshal([]byte(since), &was)
		return journal.Position{Seq: was.Seq, Chain: was.Chain}, err
	}
	seq, chain, _ := strings.Cut(since, "-")
	if at.Seq, err = strconv.ParseUint(seq, 10, 64); err == nil {
		at.Chain, err = strconv.ParseUint(chain, 16, 64)
	}
	return at, err
}

// Changed says of contexts whether something may have been committed to them since states that [Changes] returned. Without ids
// it returns all contexts of the store but legacy ones. It opens no context.
func Changed(ctx context.Context, s *engine.Store, since map[uuid.UUID]string, ids ...uuid.UUID) (map[uuid.UUID]bool, error) {
	all := len(ids) == 0
	if all {
		for e, err := range s.Entries() {
			if err != nil {
				return nil, err
			}
			if e.Folder {
				ids = append(ids, e.ID)
			}
		}
	}
	changed, legacy := make([]bool, len(ids)), make([]bool, len(ids))
	engine.InParallel(len(ids), func(i int) {
		if ctx.Err() == nil {
			changed[i] = !isCurrent(s, ids[i], since[ids[i]])
			if all && changed[i] {
				legacy[i], _ = engine.IsSplit(s.FS, ids[i].String()) // whoever reads a changed context meets the error
			}
		}
	})
	result := make(map[uuid.UUID]bool, len(ids))
	for i, id := range ids {
		if !legacy[i] {
			result[id] = changed[i]
		}
	}
	return result, ctx.Err()
}

// isCurrent reports whether nothing can have been committed to a context since a state.
func isCurrent(s *engine.Store, id uuid.UUID, since string) bool {
	var was state
	if since == "" || json.Unmarshal([]byte(since), &was) != nil || was.Log == "" {
		return false
	}
	for _, f := range was.Files {
		if was.At-f.At < int64(ResolutionOf(f.At)) {
			return false // a later change can look the same
		}
	}
	now, ok := FilesOf(s, id, was.Log)
	return ok && now == was.Files
}

// stateOf returns the state of the context's files. What the context shows after the next refresh is at least as new.
func stateOf(c *engine.Context) (is state) {
	log, err := c.Index.NewestLog()
	if err != nil || log == "" {
		return is
	}
	files, ok := FilesOf(c.Store, c.Dir.ID, log)
	if !ok {
		return is
	}
	return state{Log: log, Files: files, At: c.Store.Now().UnixNano()}
}

// Changes refreshes the context, and returns its state and the entries of the messages that were appended or replaced
// since an earlier state, in order of commits. Without an earlier state they are those of all messages that a branch, or
// a removed line in its grace period, shows: one line after the other, in order of positions. The sequence fails with
// [engine.ErrNotExist] if the history does not tell what changed. If messages were erased or removed for good, it yields
// everything, what is left of erased ones too, and then fails with an error that wraps [engine.ErrErased] as well.
func Changes(ctx context.Context, c *engine.Context, since string) (now string, entries iter.Seq2[*index.Entry, error]) {
	is, err := engine.Use(c, func() (state, error) { return stateOf(c), nil })
	if err == nil {
		err = c.Refresh(ctx)
	}
	if err == nil {
		is, err = engine.Use(c, func() (state, error) {
			at, err := c.Index.At()
			is.Seq, is.Chain = at.Seq, at.Chain
			return is, err
		})
	}
	if err == nil {
		var b []byte
		b, err = json.Marshal(is)
		now = string(b)
	}
	return now, func(yield func(*index.Entry, error) bool) {
		more := true
		pass := func(e *index.Entry) bool {
			more = yield(e, nil)
			return more
		}
		switch {
		case err != nil:
		case since == "":
			var spans []loader.Span
			if spans, err = engine.Use(c, func() ([]loader.Span, error) { return ownSpans(c) }); err == nil {
				err = eachEntry(ctx, c, spans, pass)
			}
		default:
			err = eachSince(ctx, c, since, is, pass)
		}
		if err != nil && more {
			yield(nil, engine.Wrap(engine.Error{Op: "read changes", Context: c.Dir.ID}, err))
		}
	}
}

// Rows yields the entries of the messages that a branch shows at the positions [from, to), in order.
func Rows(ctx context.Context, b *engine.Branch, from, to int64) iter.Seq2[*index.Entry, error] {
	return func(yield func(*index.Entry, error) bool) {
		more := true
		spans, err := b.Spans(from, to)
		if err == nil {
			err = eachEntry(ctx, b.Context(), spans, func(e *index.Entry) bool {
				more = yield(e, nil)
				return more
			})
		}
		if err != nil && more {
			yield(nil, engine.Wrap(engine.Error{Op: "read rows", Context: b.Context().ID(), Branch: b.Name()}, err))
		}
	}
}

// eachEntry yields the entries of spans.
func eachEntry(ctx context.Context, c *engine.Context, spans []loader.Span, yield func(*index.Entry) bool) error {
	const most = 1024 // entries at once
	for _, span := range spans {
		for from := span.From; from < span.To; {
			if err := ctx.Err(); err != nil {
				return err
			}
			page, err := engine.Use(c, func() ([]index.Entry, error) {
				return c.Index.Entries(span.Line, from, min(span.To, from+most))
			})
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for i := range page {
				if !yield(&page[i]) {
					return nil
				}
			}
			from = page[len(page)-1].Position + 1
		}
	}
	return nil
}

// eachSince yields the entries that were committed between two states.
func eachSince(ctx context.Context, c *engine.Context, since string, is state, yield func(*index.Entry) bool) error {
	fail := func(why error) error {
		return fmt.Errorf("%w: what changed since an earlier state: %w", engine.ErrNotExist, why)
	}
	was, err := commit(since)
	if err != nil {
		return fail(err)
	}
	if was == (journal.Position{Seq: is.Seq, Chain: is.Chain}) {
		return nil
	}
	t, err := engine.Use(c, func() (*index.Tail, error) { return c.Index.Resume(was) })
	more, removed := true, false
	pass := func(e *index.Entry) bool {
		more = more && yield(e)
		return more
	}
	for err == nil {
		var r index.Tailed
		var ok bool
		r, err = engine.Use(c, func() (r index.Tailed, err error) {
			r, ok, err = t.Next()
			return r, err
		})
		switch {
		case err != nil:
		case !ok:
			t.Close()
			if removed {
				return fail(fmt.Errorf("messages were %w, or removed for good", engine.ErrErased))
			}
			return nil
		case r.Kind == journal.Trim:
			removed = true
		case r.Kind == journal.Erase:
			removed = true
			err = eachErased(c, &r, pass)
		case r.Entry != nil:
			if err = ctx.Err(); err == nil {
				pass(r.Entry)
			}
		}
		if !more {
			t.Close()
			return nil
		}
	}
	if t != nil {
		t.Close()
	}
	if errors.Is(err, index.ErrGap) {
		err = fail(err)
	}
	return err
}

// eachErased yields what is left of the messages that a record erases.
func eachErased(c *engine.Context, r *index.Tailed, yield func(*index.Entry) bool) error {
	line, positions, err := r.Erasure()
	if err != nil {
		return err
	}
	for _, p := range positions {
		var ok bool
		e, err := engine.Use(c, func() (e index.Entry, err error) {
			e, ok, err = c.Index.Entry(line, p)
			return e, err
		})
		if err != nil {
			return err
		}
		if ok && e.Gone != archive.Here && !yield(&e) {
			break
		}
	}
	return nil
}

// ownSpans returns the messages that a branch, or a removed line in its grace period, shows: for each line its own ones.
func ownSpans(c *engine.Context) (spans []loader.Span, err error) {
	m := c.Current()
	all, _, err := c.Index.AllCounts()
	if err != nil {
		return nil, err
	}
	reach := branch.Reach(m)
	for i := range m.Lines {
		l := &m.Lines[i]
		end := min(reach[l.ID], all[l.ID].End())
		if end > l.Base {
			spans = append(spans, loader.Span{Line: l.ID, Folder: l.Folder, From: l.Base, To: end})
		}
	}
	return spans, nil
}
