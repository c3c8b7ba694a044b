package importer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// followed is a follower whose listings a test compares.
type followed struct {
	*Follower
	t *testing.T
}

// follow follows roots. It does not rely on sweeps: a missing hint lets the test wait forever.
func follow(t *testing.T, roots ...string) *followed {
	f := &followed{Follow(roots, nil), t}
	f.settle, f.sweep, f.poll = time.Millisecond, 24*time.Hour, time.Millisecond
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func (f *followed) list() (paths []string) {
	for path, err := range f.Histories() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// until waits until the listings have contained all of the paths. No other path may be listed.
func (f *followed) until(want ...string) {
	f.t.Helper()
	var found []string
	for {
		for _, path := range f.list() {
			if !slices.Contains(want, path) {
				f.t.Fatalf("%s did not change", path)
			}
			found = append(found, path)
		}
		if !slices.ContainsFunc(want, func(path string) bool { return !slices.Contains(found, path) }) {
			return
		}
		if err := f.Wait(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
}

func put(t *testing.T, path, content string) string {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFollower(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	single := put(t, filepath.Join(other, "one.jsonl"), "{}\n")
	put(t, filepath.Join(other, "two.jsonl"), "{}\n")
	first := put(t, filepath.Join(root, "a", "first.jsonl"), "{}\n")
	f := follow(t, root, single)
	if got := f.list(); !slices.Equal(got, []string{first, single}) {
		t.Fatalf("at first: %v", got)
	}
	if got := f.list(); got != nil {
		t.Fatalf("nothing changed, and it lists %v", got)
	}

	deep := put(t, filepath.Join(root, "b", "c", "d", "deep.jsonl"), "{}\n")
	f.until(deep)
	put(t, filepath.Join(root, "b", "c", "d", "notes.txt"), "passed over")
	put(t, deep, "{}\n{}\n")
	f.until(deep)
	put(t, filepath.Join(other, "two.jsonl"), "a file beside the root")
	put(t, single, "{}\n{}\n")
	f.until(single)

	// Another file takes the place of one, of the same size.
	err := os.Rename(put(t, filepath.Join(root, "new"), "[]\n"), first)
	if err != nil {
		t.Fatal(err)
	}
	f.until(first)
	if err := os.Truncate(deep, 1); err != nil {
		t.Fatal(err)
	}
	f.until(deep)

	// A store is no history, also while it is filled.
	put(t, filepath.Join(root, "store", storeFile), "{}")
	put(t, filepath.Join(root, "store", "x.jsonl"), "{}\n")
	moved := filepath.Join(root, "moved", "c", "d", "deep.jsonl")
	if err := os.Rename(filepath.Join(root, "b"), filepath.Join(root, "moved")); err != nil {
		t.Fatal(err)
	}
	f.until(moved)
	put(t, moved, "{}\n{}\n{}\n")
	f.until(moved)

	if len(f.seen) != 3 {
		t.Errorf("it remembers %v", f.seen)
	}
}

// TestFollowFolders: the files of one history are in several folders, or in two files.
func TestFollowFolders(t *testing.T) {
	root := t.TempDir()
	storage := filepath.Join(root, "storage")
	session := put(t, filepath.Join(storage, "session", "p", "ses_1.json"), "{}")
	for _, name := range []string{"message/ses_1/msg_1.json", "part/msg_1/prt_1.json", "message/ses_2/msg_2.json"} {
		put(t, filepath.Join(storage, name), "{}")
	}
	events := filepath.Join(root, "events")
	put(t, filepath.Join(events, "0.json"), `{"id":"0","timestamp":"2026-03-08T06:00:02","source":"user","kind":"MessageEvent"}`)
	database := put(t, filepath.Join(root, "x", "opencode.db"), "")
	f := follow(t, root)
	if got := f.list(); !slices.Equal(got, []string{events, session, database}) {
		t.Fatalf("at first: %v", got)
	}
	put(t, filepath.Join(storage, "message", "ses_1", "msg_3.json"), "{}")
	f.until(session)
	put(t, filepath.Join(storage, "part", "msg_3", "prt_3.json"), "{}")
	f.until(session)
	put(t, filepath.Join(storage, "part", "msg_3", "prt_3.json"), `{"a":1}`)
	f.until(session)
	put(t, filepath.Join(events, "1.json"), "{}")
	f.until(events)
	put(t, database+"-wal", "a page")
	f.until(database)
}

// TestFollowAgain: a failed history comes again, and so does the reason that a root cannot be listed once it changes.
func TestFollowAgain(t *testing.T) {
	root := filepath.Join(t.TempDir(), "later")
	f := follow(t, root)
	if got := f.list(); !slices.Equal(got, []string{root}) {
		t.Fatalf("of a missing root: %v", got)
	}
	if got := f.list(); got != nil {
		t.Fatalf("of a missing root, again: %v", got)
	}
	path := put(t, filepath.Join(root, "x.jsonl"), "{}\n")
	f.until(path)
	put(t, path, "{}\n{}\n")
	f.until(path)
	for range 2 {
		f.Again(path)
		if got := f.list(); !slices.Equal(got, []string{path}) {
			t.Fatalf("again: %v", got)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := f.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
