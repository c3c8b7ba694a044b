// Package ctxdirtest gives tests of programs that use package ctxdir a store in memory.
//
// It is for tests only, and may change with any version.
package ctxdirtest

import (
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// New returns an empty store in memory, which the test closes at its end. It behaves like one in a folder, except that
// nothing outside of the test can open it, and that package search cannot index it. A watcher reads it every 0.2 seconds.
func New(t testing.TB, opts ...ctxdir.Options) *ctxdir.Store {
	t.Helper()
	s, err := ctxdir.Init("memory", append(opts, knobs.Options(engine.WithFS(crashfs.New())))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
