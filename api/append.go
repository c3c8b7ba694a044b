package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

// maxLines bounds the messages of one request: they are one commit.
const maxLines = 10_000

type appended struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Branch   string `json:"branch"`
	ID       string `json:"id"`
	Position int64  `json:"position"`
	Existed  bool   `json:"existed,omitempty"` // a retry: the message was there before
}

// appendMessages appends the lines of the body as one commit: all of them, or with a problem none. The response has a
// line for each, when all are durable.
//
// A retry is safe if the messages have ids, or the request an Idempotency-Key: their ids are then derived from it.
func (x *Server) appendMessages(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	envelope, position, sequence := p.yes("envelope"), p.number("position", -1), p.number("sequence", -1)
	if err := p.done(); err != nil {
		return err
	}
	if err := wantMedia(r, ndjson, "application/json", "application/jsonl"); err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	drafts, err := readDrafts(r, envelope)
	if err != nil {
		return err
	}
	var o ctxdir.WriteOptions
	if position >= 0 {
		o.Position = &position
	}
	if sequence >= 0 {
		o.Sequence = new(uint64(sequence))
	}
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		for i := range drafts {
			if key != "" && drafts[i].ID == uuid.Nil {
				drafts[i].ID = uuid.NewSHA1(c.ID(), fmt.Appendf(nil, "%s/%s/%d", b.Name(), key, i))
			}
		}
		results, err := store(r.Context(), c, b, drafts, o)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		for _, result := range results {
			a := appended{"appended", c.ID().String(), b.Name(), result.ID.String(), result.Position, result.Existed}
			out.Write(append(record.Encode(a), '\n'))
		}
		w.Header().Set("Content-Type", ndjson)
		w.WriteHeader(http.StatusCreated)
		_, err = w.Write(out.Bytes())
		return err
	})
}

// store commits drafts. A single message shares the sync of others that are appended at the same time.
func store(
	ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, drafts []ctxdir.Draft, o ctxdir.WriteOptions,
) ([]ctxdir.AppendResult, error) {
	if len(drafts) == 1 {
		result, err := b.Append(ctx, drafts[0], o)
		return []ctxdir.AppendResult{result}, err
	}
	result, err := c.Commit(ctx, func(tx *ctxdir.Tx) error { return tx.Append(b.Name(), drafts...) }, o)
	return result.Appended, err
}

// readDrafts reads the messages of a body.
func readDrafts(r *http.Request, envelope bool) (drafts []ctxdir.Draft, err error) {
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	parse := draftOf
	if envelope {
		parse = envelopeOf
	}
	if mediaType(r) == "application/json" { // one message, which may have line breaks
		d, err := parse(body)
		if err != nil {
			return nil, invalid("the message is not valid: %v", err)
		}
		return []ctxdir.Draft{d}, nil
	}
	number := int64(0)
	for line := range bytes.Lines(body) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		d, err := parse(line)
		if err == nil && len(drafts) == maxLines {
			err = fmt.Errorf("the body exceeds the limit of %d messages", maxLines)
		}
		if err != nil {
			p := problem(codeInvalid, "line %d: %v", number, err)
			p.Line = number
			return nil, p
		}
		drafts = append(drafts, d)
	}
	if drafts == nil {
		return nil, invalid("the body contains no message")
	}
	return drafts, nil
}

// readAll reads a body into memory, which grows with what arrives, not with what the header promises.
func readAll(r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= 64<<10 {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(r.Body); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, err
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, invalid("the body ends before the length in the header")
		}
		return nil, err
	}
	return b.Bytes(), nil
}

func draftOf(line []byte) (d ctxdir.Draft, err error) {
	d.Body, err = message.Compact(line)
	return d, err
}

// envelope is a message with what a client says about it.
type envelope struct {
	ID         *uuid.UUID      `json:"id"`
	CreatedAt  json.RawMessage `json:"created_at"`
	Role       string          `json:"role"`
	Type       string          `json:"type"`
	References json.RawMessage `json:"references"`
	Message    json.RawMessage `json:"message"`
}

func envelopeOf(line []byte) (d ctxdir.Draft, err error) {
	var e envelope
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return d, err
	}
	if e.Message == nil {
		return d, errors.New(`"message" is missing`)
	}
	if e.ID != nil {
		d.ID = *e.ID
	}
	if len(e.CreatedAt) > 0 && string(e.CreatedAt) != "null" {
		text, _ := strconv.Unquote(string(e.CreatedAt))
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return d, errors.New("created_at: expected an RFC 3339 time")
		}
		d.CreatedAt = at
	}
	d.Role, d.Type = e.Role, e.Type
	if len(e.References) > 0 && string(e.References) != "null" {
		if d.References, err = message.CompactArray(e.References); err != nil {
			return d, fmt.Errorf("references: %w", err)
		}
	}
	d.Body, err = message.Compact(e.Message)
	return d, err
}

type replaced struct {
	ID string `json:"id"`
}

// replaceMessage gives a message another body. The old version goes to the trash.
func (x *Server) replaceMessage(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	shared := p.yes("shared")
	if err := p.done(); err != nil {
		return err
	}
	if err := wantMedia(r, "application/json"); err != nil {
		return err
	}
	body, err := readAll(r)
	if err != nil {
		return err
	}
	d, err := draftOf(body)
	if err != nil {
		return invalid("the message is not valid: %v", err)
	}
	return x.withMessage(r, func(b *ctxdir.Branch, m *ctxdir.Message) error {
		if err := b.Replace(r.Context(), m.ID, d, ctxdir.WriteOptions{Shared: shared}); err != nil {
			return err
		}
		return sendDocument(w, http.StatusOK, replaced{m.ID.String()})
	})
}
