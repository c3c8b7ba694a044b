package index

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// A repair is stopped between the new segment and the move of the damaged file to the trash. The next seal, or the next
// repair, removes the damaged file for good.
func TestRescueStopped(t *testing.T) {
	for _, what := range []string{"segment", "log"} {
		b := newBench(t, 9)
		b.ix.opts.Full = 1 << 20
		for range 10 {
			must(t, b.commit())
		}
		must(t, b.ix.Prepare())
		must(t, b.ix.Rotate())
		path := b.ix.state.logs[0].Name()
		if what == "segment" {
			must(t, sealAll(b.ix))
			path = "segments/" + b.ix.state.segments.last().name.File()
		}
		b.ix.Close()
		b.flip(path, `"role":"user","type":"text"`, 12) // of a message
		hurt, err := vfs.ReadFile(b.disk, path, 1<<22)
		must(t, err)

		ix := b.again(b.disk)
		all, parts, err := ix.Examine(context.Background(), true)
		must(t, err)
		if len(all)+len(parts) == 0 {
			t.Fatal("no damage")
		}
		killed := errors.New("killed")
		aside := map[string][]byte{}
		err = ix.Rescue(append(all, parts...), Rescuer{Copy: func(*Entry) []byte { return nil }, Keep: func(string) error { return killed }})
		if !errors.Is(err, killed) {
			t.Fatal(err)
		}
		ix.Close()

		ix = b.again(b.disk) // another process
		all, parts, err = ix.Examine(context.Background(), true)
		must(t, err)
		t.Log("after the stopped repair:", all, parts)
		if len(all)+len(parts) > 0 {
			must(t, ix.Rescue(append(all, parts...), Rescuer{Copy: func(*Entry) []byte { return nil }, Keep: func(p string) error {
				raw, err := vfs.ReadFile(b.disk, p, 1<<22)
				aside[p] = raw
				return err
			}}))
		}
		must(t, ix.Prepare())
		must(t, sealAll(ix))
		must(t, ix.Merge(archive.Options{}))
		ix.Close()
		now, err := vfs.ReadFile(b.disk, path, 1<<22)
		if !bytes.Equal(now, hurt) && !strings.Contains(string(aside[path]), string(hurt)) {
			t.Errorf("%s: the damaged file is neither in its place nor in the trash: %v", what, err)
		}
		b.ix = b.again(b.disk)
	}
}
