package storetest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// Halve cuts a file in the middle, and returns what is left.
func Halve(t *testing.T, path string) []byte {
	t.Helper()
	b := Must[[]byte](t)(os.ReadFile(path))
	Write(t, path, b[:len(b)/2])
	return b[:len(b)/2]
}

// NewUnreferenced makes a store with a context and a damaged blob that nothing refers to: what a power cut leaves of a
// message that was not acknowledged.
func NewUnreferenced(t *testing.T, opts ...engine.Option) (p *Patient, payload, left []byte, path string) {
	t.Helper()
	p = NewPatient(t, true)
	payload = bytes.Repeat([]byte("nobody's "), 1000)
	sum, _, err := p.Store.Blobs.PutUnsynced(payload)
	Check(t, err)
	path = filepath.Join(p.Store.Path(), filepath.FromSlash(blob.Path(sum)))
	left = Halve(t, path)
	p.Store = Must[*engine.Store](t)(Open(p.Store.Path(), opts...))
	t.Cleanup(func() { _ = p.Store.Close() })
	return p, payload, left, path
}

// PutOnly stores a payload as a blob to which no message refers.
func PutOnly(s *engine.Store, payload []byte) error {
	_, _, err := s.Blobs.Put(payload)
	return err
}
