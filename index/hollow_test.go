package index

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// TestHollowRecord writes a record that claims gigabytes but has hardly any data. No reader may accept it or allocate
// for it.
func TestHollowRecord(t *testing.T) {
	fsys, err := vfs.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	f, err := fsys.OpenFile("journal", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 1 << 40
	b, huge := appendRecord(nil, head{seq: 1, kind: KindAppend, len: 4_000_000_000}, nil)
	next, _ := appendRecord([]byte("\n"), head{seq: 9, prev: huge.chain, kind: KindAppend, len: 2, sum: bodySum([]byte("{}"))}, []byte("{}"))
	_, err = f.WriteAt(b, 0)
	if err == nil {
		_, err = f.WriteAt(next, size-int64(len(next)))
	}
	if err != nil {
		t.Skipf("no files of this size here: %v", err)
	}
	if !vfs.HasHole(f, 0, size) {
		t.Skip("the file system does not tell of holes")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	j := &journal{gen: 1, f: f}
	if _, _, err := j.readWhole(0, size); !errors.Is(err, ErrDamaged) {
		t.Errorf("read as a record: %v", err)
	}
	r := &reader{f: f, size: size}
	if _, ok, err := r.whole(0); ok || err != nil {
		t.Errorf("scanned as a record: %v, %v", ok, err)
	}
	var out [1][]byte
	readRun(f, []Entry{{Size: huge.len}}, out[:], nil)
	if out[0] != nil {
		t.Errorf("%d bytes of a run", len(out[0]))
	}
	if torn, err := r.torn(int64(headSize), size); !torn || err != nil {
		t.Errorf("what was never written was a record once: %v", err)
	}
	if rec, found, err := r.resync(0, 0); !found || err != nil || rec.seq != 9 {
		t.Errorf("behind it: %+v, %v, %v", rec.head, found, err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}
