package archive

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// A sparse file of 512 MiB that takes some KB on the disk: its footer says that the state frame is as long.
func TestSparseState(t *testing.T) {
	dir := t.TempDir()
	const hole = 512 << 20
	f := footer{context: uuid.New(), from: journal.Position{}, to: journal.Position{Seq: 1, Chain: 1}, state: skipHead}
	file, err := os.Create(filepath.Join(dir, "1-1-00000000.zst"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Write(appendSkip(nil, kindSegment, 0))
	_, _ = file.Seek(hole, 0)
	var tb tables
	if _, err = tb.write(f, hole, func(b []byte) error { _, err := file.Write(b); return err }); err != nil {
		t.Fatal(err)
	}
	file.Close()
	fsys, err := vfs.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(fsys, "1-1-00000000.zst")
	if err != nil {
		t.Fatal(err)
	}
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	_, err = s.State()
	runtime.ReadMemStats(&b)
	t.Log(err)
	if n := b.TotalAlloc - a.TotalAlloc; n > 64<<20 {
		t.Errorf("State allocates %d MiB for a file that has no data", n>>20)
	}
}
