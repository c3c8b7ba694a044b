package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// TestUnwatchedForAWhile: a folder that is created or renamed is unwatched until its name is known. What happened in it
// meanwhile is told, too.
func TestUnwatchedForAWhile(t *testing.T) {
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	var late atomic.Int32 // files written while events wait for an answer
	h := New(Options{Below: func(path string) bool {
		if path != before && path != after {
			return false
		}
		// The answer comes before the folder is watched.
		for _, folder := range []string{before, after} {
			if _, err := os.Stat(folder); err == nil {
				write(t, filepath.Join(folder, fmt.Sprint("late", late.Add(1))))
			}
		}
		return true
	}})
	defer h.Close()
	if h.Polling() != nil {
		t.Skip("folders cannot be watched here: ", h.Polling())
	}
	h.Watch(dir)
	seen := map[string]bool{}
	told := func(folder string, files int32) func(Batch) bool {
		return func(got Batch) bool {
			for path := range got.Files {
				seen[path] = true
			}
			for i := range files {
				if !seen[filepath.Join(folder, fmt.Sprint("late", i+1))] {
					return false
				}
			}
			return true
		}
	}
	if err := os.Mkdir(before, 0o700); err != nil {
		t.Fatal(err)
	}
	wanted(h, told(before, 1))
	if err := os.Rename(before, after); err != nil {
		t.Fatal(err)
	}
	// The system tells of a rename three times: twice for the names in the parent, and once for the folder itself.
	wanted(h, told(after, 4))
}
