package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wanted waits for hints until there is one that is wanted.
func wanted(h *Hints, good func(Batch) bool) {
	for !good(h.Take()) {
		<-h.Changed()
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHints(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	h := New(Options{Below: func(path string) bool { return path == below }})
	defer h.Close()
	if h.Polling() != nil {
		t.Skip("folders cannot be watched here: ", h.Polling())
	}
	h.Watch(dir)
	h.Watch(filepath.Join(dir, "nowhere"))
	file := filepath.Join(dir, "a")
	write(t, file)
	wanted(h, func(got Batch) bool { return got.Folders[dir] && got.Files[file] })
	// A folder that appears is watched if it is to be: what happens in it from then on is told.
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	wanted(h, func(got Batch) bool { return got.Files[below] })
	file = filepath.Join(below, "b")
	write(t, file)
	wanted(h, func(got Batch) bool { return got.Folders[below] && got.Files[file] })
	h.Forget(below)
	write(t, filepath.Join(below, "c"))
	write(t, filepath.Join(dir, "d"))
	wanted(h, func(got Batch) bool {
		if got.Files[filepath.Join(below, "c")] {
			t.Error("there is a hint about a folder that is not watched")
		}
		return got.Files[filepath.Join(dir, "d")]
	})
	if h.Polling() != nil || h.Every() != sweepEvery {
		t.Errorf("polling: %v, every %s", h.Polling(), h.Every())
	}
}

// TestBounds: however much happens before somebody looks, no more than so much is remembered, and that something is
// missing is.
func TestBounds(t *testing.T) {
	h := New(Options{Poll: errors.New("a test gives the hints")})
	defer h.Close()
	for i := range maxFiles + 1 {
		h.mark(filepath.Join("dir", fmt.Sprint(i)))
	}
	if got := h.Take(); len(got.Files) != maxFiles || !got.Cut || got.All || !got.Folders["dir"] {
		t.Errorf("%d files, cut %v, all %v", len(got.Files), got.Cut, got.All)
	}
	for i := range maxFolders + 1 {
		h.mark(filepath.Join("dir", fmt.Sprint(i), "x"))
	}
	if got := h.Take(); !got.All || len(got.Folders) > maxFolders {
		t.Errorf("%d folders, all %v", len(got.Folders), got.All)
	}
	if got := h.Take(); got.All || got.Cut || len(got.Folders)+len(got.Files) > 0 {
		t.Errorf("%+v is left", got)
	}
}

// TestOverflow: when the system's queue overflows, anything may have happened.
func TestOverflow(t *testing.T) {
	h := shortQueue(t)
	defer h.Close()
	dir := t.TempDir()
	h.Watch(dir)
	h.mu.Lock() // nothing is taken from the queue meanwhile
	for i := range 1000 {
		write(t, filepath.Join(dir, fmt.Sprint(i)))
	}
	h.mu.Unlock()
	wanted(h, func(got Batch) bool { return got.All })
	if h.Polling() != nil {
		t.Errorf("it is polled: %v", h.Polling())
	}
}

// TestPolled: what cannot be watched is polled, and that is said.
func TestPolled(t *testing.T) {
	h := New(Options{})
	defer h.Close()
	h.Watch(filepath.Join(t.TempDir(), strings.Repeat("long", 100)))
	if h.Polling() == nil || h.Every() != pollEvery {
		t.Errorf("polling: %v, every %s", h.Polling(), h.Every())
	}
}

// shortQueue returns hints of a system that keeps no more than a few events.
func shortQueue(t *testing.T) *Hints {
	t.Helper()
	const limit = "/proc/sys/fs/inotify/max_queued_events"
	was, err := os.ReadFile(limit)
	if err == nil {
		err = os.WriteFile(limit, []byte("8"), 0)
	}
	if err != nil {
		t.Skipf("the limit cannot be changed here: %v", err)
	}
	h := New(Options{})
	if err := os.WriteFile(limit, was, 0); err != nil {
		t.Error(err)
	}
	return h
}

// TestRenamedFolder: a folder that is renamed stays watched.
func TestRenamedFolder(t *testing.T) {
	dir := t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	h := New(Options{Below: func(path string) bool { return filepath.Dir(path) == dir }})
	defer h.Close()
	if h.Polling() != nil {
		t.Skip("folders cannot be watched here: ", h.Polling())
	}
	h.Watch(dir)
	if err := os.Mkdir(name(0), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := os.Rename(name(i), name(i+1)); err != nil {
			t.Fatal(err)
		}
		wanted(h, func(got Batch) bool { return got.Files[name(i+1)] })
		// The last hint of a rename is that of the folder itself, so another change ends it.
		write(t, filepath.Join(dir, "ready"))
		wanted(h, func(got Batch) bool { return got.Files[filepath.Join(dir, "ready")] })
		write(t, filepath.Join(name(i+1), "file"))
		wanted(h, func(got Batch) bool {
			return got.Files[filepath.Join(name(i+1), "file")] || got.Files[filepath.Join(name(i), "file")]
		})
	}
}
