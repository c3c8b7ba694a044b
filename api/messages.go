package api

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

// contents are the forms of messages by name.
var contents = map[string]record.Content{"full": record.Full, "texts": record.Texts, "none": record.None}

// span is the part of a branch that a request asks for.
type span struct {
	from, to      int64
	last          int64 // the newest so many; -1 if the request does not say
	around        uuid.UUID
	before, after int64
	at            time.Time
}

const (
	// maxAround bounds the messages before and after another one, which are read at once.
	maxAround = 1000
	// flushed is the size of the pieces in which messages are sent, in bytes.
	flushed = 32 << 10
)

// span reads the part of a branch that a request asks for.
func (p *parameters) span() span {
	s := span{
		from: p.number("from", 0), to: p.number("to", ctxdir.End), last: p.number("last", -1), around: p.id("around"),
		before: p.number("before", 0), after: p.number("after", 0), at: p.time("at"),
	}
	ways := 0
	for _, way := range []bool{p.has("from") || p.has("to") && !p.has("at"), p.has("last"), p.has("around"), p.has("at")} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		p.fail("from", "from and to, last, around, and at cannot be used together")
	case s.to < s.from:
		p.fail("to", "the end of the range is before its start")
	case (p.has("before") || p.has("after")) && s.around == uuid.Nil && s.at.IsZero():
		p.fail("before", "before and after need around or at")
	case s.before > maxAround || s.after > maxAround:
		p.fail("before", "before and after exceed the limit of %d messages", maxAround)
	}
	return s
}

// positions are the positions of the span on a branch, without the end.
func (s *span) positions(ctx context.Context, b *ctxdir.Branch, n int64) (from, to int64, err error) {
	at := int64(-1)
	switch {
	case s.last >= 0:
		return max(n-s.last, 0), n, nil
	case s.around != uuid.Nil:
		m, err := b.Message(ctx, s.around)
		if err != nil {
			return 0, 0, err
		}
		at = m.Position
	case !s.at.IsZero():
		if at, err = b.PositionAt(ctx, s.at); err != nil {
			return 0, 0, err
		}
	}
	if at >= 0 {
		return max(at-s.before, 0), min(at+s.after+1, n), nil
	}
	return min(s.from, n), min(s.to, n), nil
}

// listMessages sends messages as JSON Lines, each as it is read: memory does not grow with their number. The header
// Ctxdir-Length is the number of messages of the branch.
func (x *Server) listMessages(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	s, content := p.span(), contents[oneOf(p, "content", "full", "texts", "none")]
	if err := p.done(); err != nil {
		return err
	}
	return x.withBranch(r, func(_ *ctxdir.Context, b *ctxdir.Branch) error {
		n, err := b.Len(r.Context())
		if err != nil {
			return err
		}
		from, to, err := s.positions(r.Context(), b, n)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", ndjson)
		w.Header().Set("Ctxdir-Length", strconv.FormatInt(n, 10))
		out := bufio.NewWriterSize(w, flushed)
		for m, err := range b.Messages(r.Context(), from, to) {
			if err != nil {
				return err
			}
			if err := writeMessage(r.Context(), out, m, b.Name(), content); err != nil {
				return err
			}
		}
		return out.Flush()
	})
}

func writeMessage(ctx context.Context, out *bufio.Writer, m *ctxdir.Message, branch string, content record.Content) error {
	l, err := record.Load(ctx, m, content)
	if err != nil {
		return err
	}
	return l.Write(ctx, out, l.Head(branch))
}

// withMessage calls f with the message in the path. One that cannot be read is an error.
func (x *Server) withMessage(r *http.Request, f func(b *ctxdir.Branch, m *ctxdir.Message) error) error {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.withBranch(r, func(_ *ctxdir.Context, b *ctxdir.Branch) error {
		m, err := b.Message(r.Context(), id)
		if err != nil {
			return err
		}
		return f(b, m)
	})
}

func (x *Server) getMessage(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	content := contents[oneOf(p, "content", "full", "texts", "none")]
	if err := p.done(); err != nil {
		return err
	}
	return x.withMessage(r, func(b *ctxdir.Branch, m *ctxdir.Message) error {
		w.Header().Set("Content-Type", "application/json")
		out := bufio.NewWriterSize(w, flushed)
		if err := writeMessage(r.Context(), out, m, b.Name(), content); err != nil {
			return err
		}
		return out.Flush()
	})
}

// getBody sends the framework's object, byte for byte, and nothing else.
func (x *Server) getBody(w http.ResponseWriter, r *http.Request) error {
	return x.withMessage(r, func(_ *ctxdir.Branch, m *ctxdir.Message) error {
		if m.Unavailable != nil {
			return m.Unavailable
		}
		w.Header().Set("Content-Type", "application/json")
		out := bufio.NewWriterSize(w, flushed)
		if err := m.WriteBody(r.Context(), out); err != nil {
			return err
		}
		return out.Flush()
	})
}
