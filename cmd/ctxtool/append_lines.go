package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

type appendFlags struct {
	branch, role, id string
	expect           int64
	jsonl, envelope  bool
	maxMessage       int64
	attach           []string
}

// lineAppender stores the lines of stdin. The next batch arrives while one becomes durable: a caller that writes a line
// and waits gets its id at once, and a long input goes in large batches.
type lineAppender struct {
	a        *app
	c        *ctxdir.Context
	b        *ctxdir.Branch
	envelope bool
	expect   int64 // the next position, or -1 for any
	stored   int64
	rejected int64
}

func (a *app) appendLines(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, f *appendFlags) error {
	l := &lineAppender{a: a, c: c, b: b, envelope: f.envelope, expect: f.expect}
	limit := f.maxMessage
	if f.envelope {
		limit += maxEnvelopeHead
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // the reader may stay in a read: the process is about to end
	q := readLines(ctx, a.stdin, limit)
	for lines := q.next(ctx); len(lines) > 0; lines = q.next(ctx) {
		if err := l.store(ctx, lines); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case q.err != nil:
		return fmt.Errorf("cannot read stdin: %w", q.err)
	}
	a.detail("stored %s", plain.Count(l.stored, "message"))
	if l.rejected > 0 {
		return problems("", "failed to store %d of %s", l.rejected, plain.Count(l.rejected+l.stored, "line"))
	}
	return nil
}

// store commits lines and prints the ids of those that are durable.
func (l *lineAppender) store(ctx context.Context, lines []inputLine) error {
	drafts := make([]ctxdir.Draft, 0, len(lines))
	numbers := make([]int64, 0, len(lines))
	for _, line := range lines {
		d, err := l.draft(line)
		if err != nil {
			l.reject(line.number, err)
			continue
		}
		drafts, numbers = append(drafts, d), append(numbers, line.number)
	}
	if len(drafts) == 0 {
		return nil
	}
	results, err := l.b.AppendBatch(ctx, drafts, expect(l.expect))
	for i, r := range results {
		switch {
		case r.Err == nil:
			l.stored++
			if l.expect >= 0 {
				l.expect = max(l.expect, r.Position+1)
			}
			if perr := l.a.printAppended(l.c, l.b, r); perr != nil {
				return inputLost(perr)
			}
		case isMessageFault(r.Err):
			l.reject(numbers[i], r.Err)
		}
	}
	if ferr := l.a.out.Flush(); ferr != nil {
		return inputLost(ferr)
	}
	return err
}

// isMessageFault reports whether an error is about one message, so that the next ones can be stored.
func isMessageFault(err error) bool {
	return errors.Is(err, ctxdir.ErrConflict) || errors.Is(err, ctxdir.ErrTooLarge) || errors.Is(err, ctxdir.ErrInvalid)
}

// inputLost turns a closed stdout into a failure. Other verbs end quietly, but here input is lost.
func inputLost(err error) error {
	if term.ReaderLeft(err) {
		return errStdoutClosed
	}
	return err
}

func (l *lineAppender) reject(number int64, err error) {
	l.rejected++
	l.a.warn(errorRecord{Path: "stdin", Line: number, Error: cause(err).Error(), Hint: hint(err)})
}

// draft parses a line. It rejects here what the engine would reject together with the whole batch.
func (l *lineAppender) draft(line inputLine) (d ctxdir.Draft, err error) {
	if line.err != nil {
		return d, line.err
	}
	d.Body = line.text
	if l.envelope {
		if d, err = parseEnvelope(line.text); err != nil {
			return d, err
		}
	}
	if d.Body, err = message.Compact(d.Body); err == nil && d.References != nil {
		d.References, err = message.CompactArray(d.References)
	}
	return d, err
}

// maxEnvelopeHead bounds the envelope around a message, in bytes: the references, and a little more.
const maxEnvelopeHead = 1<<20 + 64<<10

// parseEnvelope parses a line of --envelope.
func parseEnvelope(line []byte) (d ctxdir.Draft, err error) {
	err = message.Members(line, func(key string, v jsontext.Value) error {
		switch key {
		case "id":
			if v.Kind() == 'n' {
				return nil
			}
			var text string
			if err := json.Unmarshal(v, &text); err != nil {
				return fmt.Errorf("id: %w: not a string", ctxdir.ErrInvalid)
			}
			id, err := uuid.Parse(text)
			if err != nil || len(text) != 36 || id == uuid.Nil {
				return fmt.Errorf("id: %w: %q is not a UUID", ctxdir.ErrInvalid, text)
			}
			d.ID = id
		case "created_at":
			if d.CreatedAt = message.Time(v); d.CreatedAt.IsZero() && v.Kind() != 'n' {
				return fmt.Errorf("created_at: %w: %s is not an RFC 3339 time", ctxdir.ErrInvalid, v)
			}
		case "role":
			return stringMember(key, v, &d.Role)
		case "type":
			return stringMember(key, v, &d.Type)
		case "references":
			if v.Kind() != 'n' {
				d.References = append([]byte(nil), v...)
			}
		case "message":
			d.Body = append([]byte(nil), v...)
		}
		return nil
	})
	if err == nil && d.Body == nil {
		err = fmt.Errorf(`%w: "message" is missing`, ctxdir.ErrInvalid)
	}
	return d, err
}

func stringMember(key string, v jsontext.Value, into *string) error {
	if v.Kind() == 'n' {
		return nil
	}
	if err := json.Unmarshal(v, into); err != nil {
		return fmt.Errorf("%s: %w: not a string", key, ctxdir.ErrInvalid)
	}
	return nil
}

// errStdoutClosed ends an append whose ids nobody can read.
var errStdoutClosed = errors.New("stdout was closed: the rest of the input was not stored")
