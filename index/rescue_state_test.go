package index

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

func (b *bench) flip(name, after string, at int) {
	b.t.Helper()
	raw, err := vfs.ReadFile(b.disk, name, 1<<22)
	must(b.t, err)
	i := bytes.LastIndex(raw, []byte(after))
	if i < 0 {
		b.t.Fatal(name, after)
	}
	i += at
	f, err := b.disk.OpenFile(name, os.O_RDWR)
	must(b.t, err)
	_, err = f.WriteAt([]byte{raw[i] ^ 1}, int64(i))
	must(b.t, err)
	must(b.t, f.Sync())
	must(b.t, f.Close())
}

// One byte of the state of the newest segment is damaged, and one of the begin record of the log after it. Each message is
// whole in that segment.
func TestRescueWithoutState(t *testing.T) {
	b := newBench(t, 9)
	b.ix.opts.Full = 1 << 20
	for range 20 {
		must(t, b.commit())
	}
	must(t, sealAll(b.ix))
	for range 20 {
		must(t, b.commit())
	}
	must(t, sealAll(b.ix))
	for range 3 {
		must(t, b.commit())
	}
	readable := func() (n int) {
		ix := b.again(b.disk)
		defer ix.Close()
		all, _, err := ix.AllCounts()
		must(t, err)
		for line := range all {
			for e, err := range ix.All(context.Background(), line, 0, 1<<40) {
				must(t, err)
				if _, err := ix.ReadOne(e); err == nil {
					n++
				}
			}
		}
		return n
	}
	whole := readable()
	seg := b.ix.state.segments.last().name.File()
	log := b.ix.state.newest().Name()
	b.ix.Close()
	b.flip("segments/"+seg, "ctxstat1", 20)
	b.flip(log, `"created_at":"`, 15)
	damaged := readable()
	ix := b.again(b.disk)
	all, parts, err := ix.Examine(context.Background(), true)
	must(t, err)
	var kept []string
	must(t, ix.Rescue(append(all, parts...), Rescuer{
		Copy: func(*Entry) []byte { return nil },
		Keep: func(p string) error { kept = append(kept, p); return nil },
	}))
	ix.Close()
	if n := readable(); n != whole {
		t.Errorf("%d messages are readable, %d with the damage, and %d after the repair, which kept %v", whole, damaged, n, kept)
	}
	b.ix = b.again(b.disk)
}
