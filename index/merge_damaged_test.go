package index

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// One byte of a frame of rows is damaged; its messages are whole. A merge removes the segment.
func TestMergeDamagedRows(t *testing.T) {
	tried := 0
	for seed := range uint64(40) {
		b := newBench(t, seed)
		for range 9 {
			for range 4 {
				must(t, b.commit())
			}
			must(t, sealAll(b.ix))
		}
		b.ix.Close()
		tailed := func() (n int) {
			ix := b.again(b.disk)
			defer ix.Close()
			tail, err := ix.Tail(0)
			must(t, err)
			defer tail.Close()
			for {
				r, ok, err := tail.Next()
				must(t, err)
				if !ok {
					return n
				}
				if r.Kind == journal.Add || r.Kind == journal.Replace {
					n++
				}
			}
		}
		before := tailed()
		done := false
		var file string
		for e, err := range b.disk.ReadDir("segments") {
			must(t, err)
			if done {
				break
			}
			file = "segments/" + e.Name()
			raw, err := vfs.ReadFile(b.disk, file, 1<<20)
			must(t, err)
			i := bytes.Index(raw, []byte("ctxrows1"))
			if i < 0 {
				continue
			}
			f, err := b.disk.OpenFile(file, os.O_RDWR)
			must(t, err)
			_, err = f.WriteAt([]byte{raw[i+60] ^ 1}, int64(i+60))
			must(t, err)
			must(t, f.Sync())
			must(t, f.Close())
			done = true
		}
		ix := b.again(b.disk)
		_, parts, err := ix.Examine(context.Background(), true)
		must(t, err)
		if len(parts) == 0 {
			ix.Close()
			continue
		}
		err = ix.Merge(archive.Options{})
		ix.Close()
		ix = b.again(b.disk)
		all, after, xerr := ix.Examine(context.Background(), true)
		must(t, xerr)
		ix.Close()
		if _, serr := b.disk.Lstat(file); serr == nil {
			t.Logf("seed %d: merge: %v; the segment stays", seed, err)
			continue
		}
		tried++
		if n := tailed(); n != before || len(all)+len(after) == 0 {
			t.Errorf("seed %d: merge: %v; check before: %v; check after: %v", seed, err, parts, after)
			t.Errorf("a follower saw %d messages, and %d now", before, n)
			return
		}
	}
	t.Log(tried)
}
