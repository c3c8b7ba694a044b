package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRenameNewBetweenFolders: of several who rename a file of another folder to one name at once, one does.
func TestRenameNewBetweenFolders(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no rename that replaces nothing")
	}
	fsys, err := OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	if err := errors.Join(fsys.Mkdir("from"), fsys.Mkdir("to")); err != nil {
		t.Fatal(err)
	}
	const at = 4
	for round := range 500 {
		var renamed atomic.Int32
		var all sync.WaitGroup
		to := fmt.Sprintf("to/%d", round)
		begin := make(chan bool)
		for i := range at {
			name := fmt.Sprintf("from/%d", i)
			if _, err := fsys.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				if err := WriteNew(fsys, name, []byte(name)); err != nil {
					t.Fatal(err)
				}
			}
			all.Go(func() {
				<-begin
				if err := fsys.RenameNew(name, to); err == nil {
					renamed.Add(1)
				} else if !errors.Is(err, fs.ErrExist) {
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
		if n := renamed.Load(); n != 1 {
			t.Fatalf("round %d: %d renamed their file to %s", round, n, to)
		}
	}
}
