package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"

	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Message is one stored message. Callers must not change it, since others share it.
type Message = loader.Message

// Len returns the number of messages that the branch shows.
func (b *Branch) Len(ctx context.Context) (int64, error) {
	err := ctx.Err()
	var n int64
	if err == nil {
		n, err = Use(b.c, func() (int64, error) { return b.c.length(b.c.Current(), b.name) })
	}
	return n, b.fail("count", err)
}

// Messages yields every message in order, reading ahead while the caller works. An unavailable message has Unavailable
// set; an error ends the sequence.
func (b *Branch) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return b.From(ctx, 0)
}

// From is Messages of the positions from position on.
func (b *Branch) From(ctx context.Context, position int64) iter.Seq2[*Message, error] {
	return b.Between(ctx, position, math.MaxInt64)
}

// Between is Messages of the positions [from, to). It ignores positions before the first message and beyond the last.
func (b *Branch) Between(ctx context.Context, from, to int64) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		spans, err := Use(b.c, func() ([]loader.Span, error) { return b.spans(max(from, 0), to) })
		if err == nil {
			err = b.c.Loader.Each(ctx, spans, b.c.use, func(m *Message) bool { return yield(m, nil) })
		}
		if err != nil {
			yield(nil, b.fail("read", err))
		}
	}
}

// Load returns every message of the branch.
func (b *Branch) Load(ctx context.Context) ([]*Message, error) {
	return b.Range(ctx, 0, math.MaxInt64)
}

// Range returns the messages at the positions [from, to). It ignores positions beyond the end; a negative position
// fails with [ErrPosition].
func (b *Branch) Range(ctx context.Context, from, to int64) ([]*Message, error) {
	if from < 0 || to < from {
		return nil, b.fail("read", fmt.Errorf("%w: range %d:%d", ErrPosition, from, to))
	}
	return b.read(ctx, from, to)
}

// Last returns the newest n messages in order.
func (b *Branch) Last(ctx context.Context, n int) ([]*Message, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	return b.read(ctx, -int64(n), math.MaxInt64)
}

func (b *Branch) read(ctx context.Context, from, to int64) ([]*Message, error) {
	messages, err := Use(b.c, func() ([]*Message, error) {
		spans, err := b.spans(from, to)
		if err != nil {
			return nil, err
		}
		return b.c.Loader.Range(ctx, spans)
	})
	return messages, b.fail("read", err)
}

// Message returns the message with an id, without a scan. It fails with [ErrNotExist] when the branch shows no such
// message. An unavailable message has Unavailable set.
func (b *Branch) Message(ctx context.Context, id uuid.UUID) (*Message, error) {
	m, err := Use(b.c, func() (*Message, error) {
		at, err := b.find(id)
		switch {
		case err != nil:
			return nil, err
		case at.raw != nil:
			return b.c.Loader.Loaded(at.Span, &at.Entry, at.raw)
		}
		return b.c.Loader.Load(ctx, at.Span, &at.Entry)
	})
	return m, Wrap(Error{Op: "read", Context: b.c.Dir.ID, Branch: b.name, ID: id}, err)
}

func (b *Branch) fail(op string, err error) error {
	return Wrap(Error{Op: op, Context: b.c.Dir.ID, Branch: b.name}, err)
}

// Place is the result of a search for a message.
type Place struct {
	Span  loader.Span
	Entry index.Entry
	free  bool   // no message found, and no file bears the id in the folder of the requested line
	raw   []byte // the file's content, if it was read and matches the commit
}

// find looks up an id among the messages that the branch shows.
func (b *Branch) find(id uuid.UUID) (at Place, err error) {
	m := b.c.Current()
	info, err := branch.Get(m, b.name)
	if err != nil {
		return Place{}, err
	}
	return b.c.find(m, info.Line, id)
}

// find looks up an id in the history of a line. It searches the messages in journals, then probes the folders of the
// lines for the file, then searches packs, then the rows marked lost. It scans all rows only where a file of that name,
// or a pack, shows that something is wrong. So it misses a message that left nothing behind and that no repair has seen
// yet. Other processes may archive or unarchive the message before or during the search, even while the caller holds the
// lock: a write does not reread index.json. After such a change find searches again.
func (c *Context) find(m *Metadata, line, id uuid.UUID) (at Place, err error) {
	for range SearchAttempts {
		seen := c.Log.IndexVersion()
		if at, err = c.findOnce(m, line, id); !errors.Is(err, ErrNotExist) || !c.Log.IndexChanged(seen) {
			break
		}
	}
	return at, err
}

// SearchAttempts bounds the searches for an id that other processes move meanwhile.
const SearchAttempts = 8

func (c *Context) findOnce(m *Metadata, line, id uuid.UUID) (Place, error) {
	end, err := c.End(m, line)
	if err != nil {
		return Place{}, err
	}
	lines, err := branch.Lines(m, line, end)
	if err != nil {
		return Place{}, err
	}
	free := false
	for i, seg := range lines {
		l, _ := m.Line(seg.Line)
		span := loader.Span{Line: seg.Line, Folder: l.Folder, From: seg.From, To: seg.To}
		e, ok, err := c.Log.FindRecent(seg.Line, id, seg.To)
		if err != nil {
			return Place{}, err
		}
		if ok {
			return Place{Span: span, Entry: e}, nil
		}
		p, err := c.probe(span, id)
		if err != nil {
			return Place{}, err
		}
		if p.ok {
			return Place{Span: span, Entry: p.entry, raw: p.raw}, nil
		}
		free = free || i == 0 && p.none && seg.Line == line
		if e, ok, err = c.Log.Find(seg.Line, id, seg.To, p.wrong); err != nil {
			return Place{}, err
		}
		if ok {
			return Place{Span: span, Entry: e}, nil
		}
		if p.failed != nil {
			return Place{}, p.failed
		}
	}
	return Place{free: free}, fmt.Errorf("%w: message %s", ErrNotExist, id)
}

// probeResult is the result of a probe for a message's file.
type probeResult struct {
	ok     bool // the message was found
	entry  index.Entry
	raw    []byte // the file's content, if it matches the commit
	none   bool   // no file bears the id
	wrong  bool   // a file shows neither where the message is nor that it is another message
	failed error  // the error of reading the file
}

// probe looks for a message's file under its id, and under the name that the file has when the id was taken.
func (c *Context) probe(span loader.Span, id uuid.UUID) (p probeResult, err error) {
	names := []uuid.UUID{id}
	if counts, _, err := c.Log.Counts(span.Line); err != nil {
		return p, err
	} else if counts.Derived > 0 {
		names = append(names, message.DerivedID(span.Line, id.String()))
	}
	for _, file := range names {
		raw, _, err := c.Dir.ReadMessage(span.Folder, file)
		if errors.Is(err, fs.ErrNotExist) {
			p.none = p.none || file == id
			continue
		}
		if err != nil {
			p.wrong, p.failed = true, errors.Join(p.failed, err)
			continue
		}
		if p.ok, err = c.isExact(span, id, raw, &p.entry); p.ok || err != nil {
			p.raw = raw
			return p, err
		}
		env, err := message.Parse(raw)
		if err != nil || env.ID != id {
			p.wrong = true
			continue
		}
		entries, err := c.Log.Entries(env.Line, env.Position, env.Position+1)
		switch {
		case err != nil:
			return p, err
		case len(entries) == 0 || entries[0].ID != id:
			p.wrong = true
		case env.Line == span.Line && env.Position >= span.From && env.Position < span.To:
			p.ok, p.entry = true, entries[0]
			return p, nil
		}
	}
	return p, nil
}

// isExact reports whether a file holds a message of a span as it was committed, and sets its entry.
func (c *Context) isExact(span loader.Span, id uuid.UUID, raw []byte, e *index.Entry) (bool, error) {
	a, ok := message.ParseAddress(raw)
	if !ok || a.ID != id || a.Line != span.Line || a.Position < span.From || a.Position >= span.To {
		return false, nil
	}
	entries, err := c.Log.Entries(a.Line, a.Position, a.Position+1)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	*e = entries[0]
	return e.ID == id && e.Size == int64(len(raw)) && e.Sum == message.Sum(raw), nil
}
