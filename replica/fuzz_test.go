package replica

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// FuzzServe: whatever a client sends, the peer answers or fails, and the store stays whole.
func FuzzServe(f *testing.F) {
	f.Add([]byte{byte(callContexts), 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{byte(callApply), 0, 0})
	f.Add([]byte{byte(callGet), 1, 64})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDevice(t, "peer")
		id := d.create(ctxdir.Metadata{Title: "here"})
		d.append(id, "main", "one")
		var answer bytes.Buffer
		_ = Serve(t.Context(), d.f, Limits{Bytes: 1 << 20}, bytes.NewReader(b), &answer)
		for f, err := range d.s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
			if err != nil || f.Severity == ctxdir.SeverityError {
				t.Errorf("%+v, %v", f, err)
			}
		}
	})
}

// answers is a Caller whose peer sends anything.
type answers struct{ r *bytes.Reader }

func (a answers) Call(_ context.Context, request io.Reader) (io.ReadCloser, error) {
	_, err := io.Copy(io.Discard, request)
	return &pieceOf{a.r}, err
}

// pieceOf is an answer of at most 64 bytes of the input: the next answer has the rest.
type pieceOf struct{ r *bytes.Reader }

func (p *pieceOf) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), 64)]) }
func (p *pieceOf) Close() error               { return nil }

// FuzzAnswers: whatever a peer answers, a sync ends, and the store stays whole: nothing but contexts comes into it.
func FuzzAnswers(f *testing.F) {
	f.Add(append(make([]byte, 20), 1, 0, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDevice(t, "here")
		id := d.create(ctxdir.Metadata{Title: "here"})
		d.append(id, "main", "one")
		_, _ = Sync(t.Context(), d.f, NewClient(answers{bytes.NewReader(b)}, uuid.Nil), Options{Host: "h"})
		for f, err := range d.s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
			if err != nil || f.Severity == ctxdir.SeverityError {
				t.Errorf("%+v, %v", f, err)
			}
		}
	})
}
