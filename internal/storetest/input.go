package storetest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
)

func NewStore(t *testing.T, opts ...engine.Option) (*engine.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := Init(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

func NewContext(t *testing.T, opts ...engine.Option) (*engine.Context, string) {
	t.Helper()
	s, dir := NewStore(t, opts...)
	c, err := s.Create(context.Background(), engine.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, filepath.Join(dir, c.ID().String())
}

// Tree lists every file with its content: nothing has changed when it is equal.
func Tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path)
		if d.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			b.Write(bytes.TrimRight(raw, "\n"))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
