package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// TestForgettingNote leaves the note of a removal. The next store removes the folder, but not while a removal runs, and
// not if it may only read.
func TestForgettingNote(t *testing.T) {
	dir := t.TempDir()
	s, err := engine.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(dir, engine.DerivedFolder, "cache")
	fill := func() {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(cache), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cache, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func(opts ...engine.Option) bool {
		t.Helper()
		next, err := engine.Open(dir, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		_, err = os.Lstat(cache)
		return err == nil
	}
	if err := s.BeginErasure(); err != nil || s.IsErasing() {
		t.Errorf("without a folder: %v, and a note", err)
	}
	fill()
	release, err := s.LockCollection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.BeginErasure(); err != nil || !s.IsErasing() {
		t.Errorf("no note: %v", err)
	}
	if !there() {
		t.Error("the folder is gone while a removal runs")
	}
	if err := s.EndErasure(t.Context()); err != nil || s.IsErasing() || !there() {
		t.Errorf("after the removal: %v", err)
	}
	if err := s.BeginErasure(); err != nil {
		t.Fatal(err)
	}
	release()
	if !there(engine.ReadOnly()) {
		t.Error("a store that may only read removed the folder")
	}
	if there() {
		t.Error("the folder of an interrupted removal is there")
	}
	fill()
	if there(); s.IsErasing() {
		t.Error("a note is there")
	}
}
