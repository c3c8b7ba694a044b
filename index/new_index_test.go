package index

import (
	stdcontext "context"
	"errors"
	"os"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestNewIndexTorn: the index.json of a new context is not synced. Until the first fold a context is read without it.
// Once there are rows, a damaged index.json is rebuilt.
func TestNewIndexTorn(t *testing.T) {
	t.Parallel()
	for name, tear := range map[string]func(b []byte) []byte{
		"missing": nil,
		"empty":   func([]byte) []byte { return nil },
		"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
		"half":    func(b []byte) []byte { return b[:len(b)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			file := b.root + "/" + ctxfolder.IndexFile
			damage := func() {
				raw, err := os.ReadFile(file)
				b.must(err)
				b.must(os.Remove(file))
				if tear != nil {
					b.must(os.WriteFile(file, tear(raw), 0o600))
				}
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

// TestFirstFoldCut cuts the power at each operation of the first fold of a context whose index.json a crash has torn. No
// cut makes the index of rows and journals unreadable.
func TestFirstFoldCut(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		b, disk := newCrashBench(t)
		b.must(b.add(5, true))
		torn := disk.Crash(crashfs.Lose)
		b.fs = torn
		b.open(b.dir.ID)
		b.intact()
		torn.CutAt(len(torn.Ops()) + k)
		err := b.log.Fold(stdcontext.Background(), false)
		if err != nil && !errors.Is(err, crashfs.ErrPowerCut) {
			t.Fatal(err)
		}
		for seed := range uint64(6) {
			left := *b
			left.fs = torn.Crash(crashfs.Random(seed + uint64(k)*100))
			left.open(b.dir.ID)
			left.intact()
			left.close()
		}
		if !torn.PowerCut() {
			return
		}
	}
}
