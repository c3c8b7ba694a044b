package index

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// The newest log has one acknowledged record. One byte of that is damaged, and one of the begin record. A writer, and a
// repair, put another log in its place, without a copy.
func TestDamagedLogStays(t *testing.T) {
	for _, repair := range []bool{false, true} {
		b := newBench(t, 5)
		b.ix.opts.Full = 1 << 20
		for range 5 {
			must(t, b.commit())
		}
		must(t, b.ix.Prepare())
		must(t, b.ix.Rotate())
		must(t, b.ix.Prepare())
		c := b.ix.Append([]journal.Item{{Kind: "note", Body: []byte(`{"text":"acknowledged words"}`)}}, true)
		must(t, c.Err)
		must(t, c.Wait())
		name := b.ix.state.newest().Name()
		b.ix.Close()
		f, err := b.disk.OpenFile(name, os.O_RDWR)
		must(t, err)
		raw, err := vfs.ReadFile(b.disk, name, 1<<20)
		must(t, err)
		for _, text := range []string{`"created_at":"`, `{"text":"`} {
			i := bytes.Index(raw, []byte(text)) + 3
			_, err = f.WriteAt([]byte{raw[i] ^ 1}, int64(i))
			must(t, err)
		}
		must(t, f.Sync())
		must(t, f.Close())

		ix := b.again(b.disk)
		found, err := ix.Problems()
		must(t, err)
		if len(found) == 0 {
			t.Fatal("no problem before the write")
		}
		t.Log(found)
		var aside []string
		if repair {
			must(t, ix.Rescue(found, Rescuer{Copy: func(*Entry) []byte { return nil }, Keep: func(p string) error {
				raw, err := vfs.ReadFile(b.disk, p, 1<<20)
				aside = append(aside, string(raw))
				return err
			}}))
		} else {
			must(t, ix.Prepare())
			c := ix.Append([]journal.Item{{Kind: "note", Body: []byte(`{}`)}}, true)
			must(t, c.Err)
			must(t, c.Wait())
		}
		ix.Close()
		b.ix = b.again(b.disk)
		found, err = b.ix.Problems()
		must(t, err)
		if !strings.Contains(contents(t, b.disk, ".")+strings.Join(aside, ""), "acknowledged words") {
			t.Errorf("repair %v: the only copy is gone; problems now: %v", repair, found)
		}
	}
}
