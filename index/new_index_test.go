package index

import (
	stdcontext "context"
	"errors"
	"os"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestNewIndexTorn: the index.json of a new context is not synced. Until the first fold a torn one changes nothing. Once
// there are rows, a damaged index.json is rebuilt.
func TestNewIndexTorn(t *testing.T) {
	t.Parallel()
	for name, tear := range map[string]func(b []byte) []byte{
		"empty": func([]byte) []byte { return nil },
		"zeros": func(b []byte) []byte { return make([]byte, len(b)) },
		"half":  func(b []byte) []byte { return b[:len(b)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			file := b.root + "/" + ctxfolder.IndexFile
			damage := func() {
				raw, err := os.ReadFile(file)
				b.must(err)
				b.must(os.WriteFile(file, tear(raw), 0o600))
				b.reopen()
			}
			b.must(b.add(5, true))
			at := b.log.state.place()
			damage()
			b.intact()
			if now := b.log.state.place(); now != at {
				t.Errorf("the history is at %v, it was at %v", now, at)
			}
			b.must(b.add(3, true))
			b.must(b.log.Fold(stdcontext.Background(), false))
			b.must(b.add(1, true))
			b.reopen()
			b.intact()
			damage()
			b.shows(len(b.ids))
			if problems, err := b.log.Problems(); err != nil || len(problems) == 0 {
				t.Errorf("a damaged index.json beside rows: %+v, %v", problems, err)
			}
		})
	}
}

// TestFirstFoldCut cuts the power at each operation of the first fold of a context. Its index.json is not durable, or a crash has
// torn it. No cut makes the index of rows and journals unreadable.
func TestFirstFoldCut(t *testing.T) {
	t.Parallel()
	for k := 2; ; k++ {
		b, disk := newCrashBench(t)
		b.must(b.add(5, true))
		if torn := k%2 == 0; torn {
			disk = disk.Crash(crashfs.Lose)
			b.fs = disk
			b.open(b.dir.ID)
			b.intact()
		}
		disk.CutAt(len(disk.Ops()) + k/2)
		err := b.log.Fold(stdcontext.Background(), k%4 > 1)
		if err != nil && !errors.Is(err, crashfs.ErrPowerCut) {
			t.Fatal(err)
		}
		for seed := range uint64(6) {
			left := *b
			left.fs = disk.Crash(crashfs.Random(seed + uint64(k)*100))
			left.open(b.dir.ID)
			left.intact()
			left.close()
		}
		if !disk.PowerCut() && k > 2 {
			return
		}
	}
}
