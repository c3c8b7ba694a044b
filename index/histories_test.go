package index

import (
	"bytes"
	stdcontext "context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// newMixed makes a context over which an older copy was copied. The copy has index.json, journal 1, and three messages.
// Of the newer history journals 2 and 3 are left, or journal 3 alone; journal 3 holds two messages.
func newMixed(t *testing.T, second bool) (*bench, *crashfs.FS) {
	b, disk := newCrashBench(t)
	b.must(b.add(3, true))
	older := map[string][]byte{}
	for _, name := range []string{ctxfolder.IndexFile, ctxfolder.JournalFile(1)} {
		raw, err := vfs.ReadFile(b.dir.FS, name, 1<<20)
		b.must(err)
		older[name] = raw
	}
	ids := b.ids
	for range 2 {
		b.must(b.add(4, false))
		b.must(b.rotate())
	}
	b.must(b.add(2, false))
	b.close()
	for name, raw := range older {
		b.must(b.fs.Remove(b.dir.ID.String() + "/" + name))
		b.must(vfs.WriteSynced(b.fs, b.dir.ID.String()+"/"+name, raw))
	}
	if !second {
		b.must(b.fs.Remove(b.dir.ID.String() + "/" + ctxfolder.JournalFile(2)))
	}
	b.must(b.fs.SyncDir(b.dir.ID.String()))
	b.must(b.fs.SyncAll())
	b.ids = ids
	b.open(b.dir.ID)
	return b, disk
}

// trashed counts the journals in the context's trash.
func (b *bench) trashed() (n int) {
	for e, err := range b.dir.FS.ReadDir(ctxfolder.Trash) {
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		b.must(err)
		for f, err := range b.dir.FS.ReadDir(ctxfolder.Trash + "/" + e.Name()) {
			b.must(err)
			if _, ok := ctxfolder.ParseJournalFile(f.Name()); ok {
				n++
			}
		}
	}
	return n
}

// TestOlderCopyOverNewer restores an older journal under newer ones. Journals of the newer history must not count,
// whatever their numbers. New messages must survive rotations, and the journals in the way go to the trash.
func TestOlderCopyOverNewer(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"the next journal is there": true, "one behind a gap": false} {
		t.Run(name, func(t *testing.T) {
			b, _ := newMixed(t, second)
			defer b.close()
			b.shows(3)
			strays, err := b.log.Strays(stdcontext.Background())
			b.must(err)
			if len(strays) == 0 || strays[len(strays)-1].Journal != 3 || strays[len(strays)-1].Hidden != 2 || !strays[len(strays)-1].Next {
				t.Fatalf("strays %+v", strays)
			}
			for range 4 {
				b.must(b.add(2, true))
				b.must(b.rotate())
				b.reopen()
				b.shows(len(b.ids))
				if p, err := b.log.Problems(); err != nil || len(p) > 0 {
					t.Fatalf("%v, %v", p, err)
				}
			}
			want := 1
			if second {
				want = 2
			}
			if got := b.trashed(); got != want {
				t.Errorf("%d journals in the trash, wanted %d", got, want)
			}
		})
	}
}

// TestRecommitBesideStray begins a new journal after a failed sync where a journal of another history has its number.
func TestRecommitBesideStray(t *testing.T) {
	t.Parallel()
	b, disk := newMixed(t, true)
	defer b.close()
	failed := false
	disk.Fail(func(o crashfs.Op) error {
		if !failed && o.Kind == crashfs.KindDatasync && strings.HasSuffix(o.Path, ctxfolder.JournalFile(1)) {
			failed = true
			return syscall.EIO
		}
		return nil
	})
	if err := b.add(1, false); err == nil {
		t.Fatal("the sync did not fail")
	}
	e, err := b.log.Entries(b.line, 3, 4)
	b.must(err)
	b.ids = append(b.ids[:3], e[0].ID)
	b.must(b.add(1, true))
	b.shows(5)
	if b.trashed() != 1 {
		t.Error("the journal that was in the way is not in the trash")
	}
	b.reopen()
	b.shows(5)
}

// TestRotationOntoStrayCut cuts the power at every operation of a rotation onto the number of a journal of another
// history. Acknowledged messages must survive, and so must that journal, in its place or in the trash.
func TestRotationOntoStrayCut(t *testing.T) {
	t.Parallel()
	for k, cut := 1, true; cut; k++ {
		b, disk := newMixed(t, true)
		stray, err := vfs.ReadFile(b.dir.FS, ctxfolder.JournalFile(2), 1<<20)
		b.must(err)
		b.must(b.add(2, true))
		disk.CutAt(len(disk.Ops()) + k)
		err = b.rotate()
		if cut = disk.PowerCut(); !cut {
			b.must(err)
		}
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep} {
			left := *b
			left.fs = disk.Crash(choice)
			left.open(b.dir.ID)
			left.shows(5)
			found := false
			b.must(walk(left.dir.FS, ".", func(path string) {
				raw, err := vfs.ReadFile(left.dir.FS, path, 1<<20)
				b.must(err)
				found = found || bytes.Equal(raw, stray)
			}))
			if !found {
				t.Fatalf("power cut at operation %d, %s: the journal that was in the way is gone", k, choice)
			}
			b.must(left.add(1, false))
			left.shows(6)
			left.close()
		}
	}
}

func walk(fsys vfs.FS, folder string, f func(path string)) error {
	for e, err := range fsys.ReadDir(folder) {
		if err != nil {
			return err
		}
		if path := folder + "/" + e.Name(); e.IsDir() {
			err = walk(fsys, path, f)
		} else {
			f(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestTailBesideStray checks that a follower begins in the context's own journal and continues through rotations,
// whatever journals of another history come after it.
func TestTailBesideStray(t *testing.T) {
	t.Parallel()
	for _, second := range []bool{true, false} {
		b, _ := newMixed(t, second)
		live, err := FollowEnd(b.follow())
		b.must(err)
		defer live.Close()
		if live.Journal() != 1 || live.At().Seq != 3 {
			t.Fatalf("the tail is in journal %d, at %v", live.Journal(), live.At())
		}
		for range 4 {
			b.must(b.add(2, true))
			ids, err := tailed(t, live)
			b.must(err)
			sameIDs(t, ids, b.ids[len(b.ids)-2:])
			b.must(b.rotate())
		}
		b.close()
	}
}

// TestRebuildOfMixed loses index.json after another copy was copied over the context and more was appended. Messages
// acknowledged since must be there, and the other history must not take their places.
func TestRebuildOfMixed(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"the next journal is there": true, "one behind a gap": false} {
		t.Run(name, func(t *testing.T) {
			b, _ := newMixed(t, second)
			defer b.close()
			b.must(b.add(20, true))
			b.must(b.dir.FS.Remove(ctxfolder.IndexFile))
			b.reopen()
			b.shows(23)
			b.must(b.add(1, true))
			b.reopen()
			b.shows(24)
		})
	}
}

// TestRowsOfAnotherHistory checks that a fold removes surplus rows, so that no rebuild takes them for messages.
func TestRowsOfAnotherHistory(t *testing.T) {
	t.Parallel()
	b, _ := newMixed(t, false)
	defer b.close()
	rows := ctxfolder.RowsFile(b.line, 0)
	info, err := b.dir.FS.Lstat(rows)
	b.must(err)
	if info.Size() != 11*rowWidth {
		t.Fatalf("%d rows of the newer history", info.Size()/rowWidth)
	}
	b.must(b.add(1, true))
	b.must(b.rotate())
	b.must(b.dir.FS.Remove(ctxfolder.IndexFile))
	b.must(b.dir.FS.Remove(ctxfolder.JournalFile(3)))
	b.reopen()
	b.shows(4)
}
