// Package adaptertest is shared test code of the adapters in contrib: stores, and processes that work on one store at
// the same time.
package adaptertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir"
)

const (
	dirVariable    = "CTXDIR_ADAPTERTEST_DIR"
	numberVariable = "CTXDIR_ADAPTERTEST_NUMBER"
)

// Open opens the store in dir, or in a new folder if dir is empty, until the end of the test.
func Open(t testing.TB, dir string) *ctxdir.Store {
	t.Helper()
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "store")
	}
	s, err := ctxdir.Init(dir)
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

// Main runs the tests of a package. In a process that [Processes] started it calls child instead, with the store and
// the number of the process.
func Main(m *testing.M, child func(s *ctxdir.Store, number int) error) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	number, _ := strconv.Atoi(os.Getenv(numberVariable))
	s, err := ctxdir.Open(dir)
	if err == nil {
		if err = child(s, number); err == nil {
			err = s.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Processes starts n processes that call the child of [Main] at the same time, and waits for them.
func Processes(t testing.TB, s *ctxdir.Store, n int) {
	t.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			p := exec.Command(os.Args[0])
			p.Env = append(os.Environ(), dirVariable+"="+s.Info().Path, numberVariable+"="+strconv.Itoa(i))
			if out, err := p.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	group.Wait()
}
