package importer

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir/internal/watch"
)

// Follower lists the histories under some roots again and again: each time those that are new, and those that a tool
// has written to since. It remembers a few bytes for each history. Use one goroutine.
type Follower struct {
	roots  []string
	passed func(path string)
	hints  *watch.Hints
	seen   map[string]uint64 // stamps of histories, and of errors about paths
	listed map[string]uint64 // those of the running listing
	began  time.Time         // the last listing

	settle, sweep, poll time.Duration // tests change them
}

// The intervals of a follower. Tools write in bursts, so it waits until one has probably ended. Sweeps find what no
// hint announced, as on a network file system.
const (
	settleAfter = 200 * time.Millisecond
	sweepEvery  = time.Minute
	pollEvery   = 2 * time.Second
	longestRest = time.Minute
)

// Follow returns a follower of the histories that [Walk] lists under each root. passed is as for Walk.
func Follow(roots []string, passed func(path string)) *Follower {
	f := &Follower{roots: roots, passed: passed, seen: map[string]uint64{}, settle: settleAfter, sweep: sweepEvery, poll: pollEvery}
	if passed == nil {
		f.passed = func(string) {}
	}
	f.hints = watch.New(watch.Options{Below: isOpenFolder})
	return f
}

// isOpenFolder reports whether a path is a folder into which Walk looks.
func isOpenFolder(path string) bool {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() {
		return false
	}
	_, err = os.Lstat(filepath.Join(path, storeFile))
	return err != nil
}

// Close stops watching.
func (f *Follower) Close() error { return f.hints.Close() }

// Polling returns why the follower polls, nil if the system notifies it.
func (f *Follower) Polling() error { return f.hints.Polling() }

// Histories lists what is new or changed since the last call, in the order of [Walk]. The first call lists everything.
// A history that changes while its import runs is listed by the next call.
func (f *Follower) Histories() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		f.began = time.Now()
		f.listed = make(map[string]uint64, len(f.seen))
		defer func() { f.seen = f.listed }()
		w := &walker{passed: f.passed, folder: f.hints.Watch}
		w.yield = func(path string, err error) bool {
			stamp, _ := stampOf(path, err)
			old, known := f.seen[path]
			if f.listed[path] = stamp; known && old == stamp {
				return true
			}
			return yield(path, err)
		}
		for _, root := range f.roots {
			switch st, err := os.Stat(root); {
			case err != nil:
				f.hints.Watch(filepath.Dir(root))
				if !w.yield(root, err) {
					return
				}
			case st.IsDir():
				if !w.list(root) {
					return
				}
			default:
				f.hints.Watch(filepath.Dir(root))
				if !w.yield(root, nil) {
					return
				}
			}
		}
	}
}

// Again makes the next listing repeat a history of this one, even if the history stays as it is.
func (f *Follower) Again(path string) { delete(f.listed, path) }

// Wait returns when a history may have changed, or with the error of ctx. After a listing and its imports it rests for
// four times as long as they took, up to a minute, so that following a large history does not occupy a processor.
func (f *Follower) Wait(ctx context.Context) error {
	rested := time.Now().Add(min(4*time.Since(f.began), longestRest))
	every := f.sweep
	if f.hints.Polling() != nil {
		every = f.poll
	}
	sweep := time.NewTimer(every)
	defer sweep.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.hints.Changed():
	case <-sweep.C:
	}
	settled := time.NewTimer(max(f.settle, time.Until(rested)))
	defer settled.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-settled.C:
	}
	f.hints.Take() // what changes from here on wakes the next call
	return nil
}
