package index

import (
	stdcontext "context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// trim cuts the bench's line, durably. Message files stay: nothing must bring them back.
func (b *bench) trim(end int64) {
	b.t.Helper()
	b.must(b.dir.Lock.Acquire(stdcontext.Background()))
	b.must(b.log.Prepare())
	item, err := b.log.TrimItem(b.line, end)
	b.must(err)
	commit := b.log.Append([]Item{item})
	b.must(b.dir.Lock.Release())
	b.must(commit.Err)
	b.must(commit.Wait())
	b.ids = b.ids[:end]
}

// unname takes the branch off the bench's line, which a purge is ending: another branch shows its first to messages.
func (b *bench) unname(to int64) {
	b.t.Helper()
	m, _, err := b.dir.ReadMetadata()
	b.must(err)
	line, err := uuid.NewV7()
	b.must(err)
	_, err = branch.Rewind(m, "main", to, to+1, line, time.Now())
	b.must(err)
	branch.Purge(m, b.line)
	m.Revision++
	_, err = b.dir.WriteMetadata(m)
	b.must(err)
}

func (b *bench) fold(settle bool) {
	b.t.Helper()
	b.must(b.log.Fold(stdcontext.Background(), settle))
}

// agrees checks counts against entries.
func (b *bench) agrees() {
	b.t.Helper()
	b.shows(len(b.ids))
	entries, err := b.log.Entries(b.line, 0, 1<<40)
	b.must(err)
	c, _, err := b.log.Counts(b.line)
	b.must(err)
	var size int64
	for _, e := range entries {
		size += e.Size
	}
	if c.Bytes != size || c.Count > 0 && c.Last != b.ids[len(b.ids)-1] {
		b.t.Fatalf("counts %+v, the entries have %d bytes", c, size)
	}
}

// lost are the ways in which the index is lost, and journals with it.
var lost = map[string]func(b *bench) error{
	"nothing": func(*bench) error { return nil },
	"index":   func(b *bench) error { return os.Remove(filepath.Join(b.root, ctxfolder.IndexFile)) },
	"rows": func(b *bench) error {
		return os.RemoveAll(filepath.Join(b.root, ctxfolder.RowsFolder))
	},
	"index and rows": func(b *bench) error {
		_ = os.RemoveAll(filepath.Join(b.root, ctxfolder.RowsFolder))
		return os.Remove(filepath.Join(b.root, ctxfolder.IndexFile))
	},
}

// TestTrim checks that cut messages stay away, however much was folded before and after, even if the index is rebuilt
// from rows and message files that are still there. Later messages follow the remaining ones.
func TestTrim(t *testing.T) {
	t.Parallel()
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for how, lose := range lost {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for folds := 0; folds < 8; folds += stride {
				for _, end := range []int64{0, 3, 5} {
					b := newBench(t)
					b.unname(min(end, 2)) // a branch shows less than is left: a rebuild is to go by the record
					at := func(bit int) {
						if folds&bit != 0 {
							b.fold(false)
						}
					}
					b.must(b.add(4, true))
					at(1)
					b.must(b.add(4, true))
					at(2)
					b.trim(end)
					b.agrees()
					at(4)
					b.agrees()
					reopened := func() {
						t.Helper()
						b.reopen()
						b.agrees()
					}
					reopened()
					b.must(lose(b))
					reopened()
					b.must(b.add(2, true))
					b.agrees()
					reopened()
					b.fold(true)
					reopened()
					b.close()
					if t.Failed() {
						t.Fatalf("%s lost, folds %03b, cut at %d", how, folds, end)
					}
				}
			}
		})
	}
}

// TestTrimmedRowsAreGone checks that rows of cut messages are gone before the record of the cut may go, so that a later
// rebuild does not show them.
func TestTrimmedRowsAreGone(t *testing.T) {
	t.Parallel()
	for _, end := range []int64{0, 3} {
		b := newBench(t)
		b.unname(end)
		b.must(b.add(8, false))
		b.fold(true)
		b.trim(end)
		b.fold(true)
		info, err := os.Stat(filepath.Join(b.root, ctxfolder.RowsFile(b.line, 0)))
		if end == 0 && !os.IsNotExist(err) || end > 0 && (err != nil || info.Size() != end*rowWidth) {
			t.Errorf("cut at %d: %v, %v", end, info, err)
		}
	}
}

// TestTrimTakesNothingShown puts a cut line back under a branch and loses the records of that. A rebuild must not apply
// the cut: the message files are there.
func TestTrimTakesNothingShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 2 {
		b.must(b.add(3, true))
		b.fold(true)
	}
	ids := b.ids
	b.trim(2)
	b.ids = ids
	b.close()
	b.must(lost["index and rows"](b))
	b.open(b.dir.ID)
	b.agrees()
}

// TestTrimOfOthers checks that another handle sees the cut, and that a stale handle does not append after the cut
// messages.
func TestTrimOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.add(5, true))
	other := *b
	other.open(b.dir.ID)
	defer other.close()
	other.shows(5)
	b.trim(2)
	b.must(other.log.Refresh())
	other.ids = b.ids
	other.agrees()
	b.must(other.add(1, true))
	b.ids = other.ids
	b.must(b.log.Refresh())
	b.agrees()
	b.fold(true)
	b.must(other.log.Refresh())
	other.agrees()
}

// TestPowerCutAroundTrim cuts the power at each operation from the cut of a line to the settle after it.
func TestPowerCutAroundTrim(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		b, disk := newCrashBench(t)
		b.unname(1)
		b.must(b.add(6, true))
		b.fold(true)
		before := b.ids
		disk.CutAt(len(disk.Ops()) + k)
		trimmed := func() (trimmed bool) {
			if b.dir.Lock.Acquire(stdcontext.Background()) != nil || b.log.Prepare() != nil {
				return false
			}
			item, err := b.log.TrimItem(b.line, 2)
			b.must(err)
			commit := b.log.Append([]Item{item})
			trimmed = commit.Err == nil && commit.Wait() == nil
			_ = b.dir.Lock.Release()
			_ = b.log.Fold(stdcontext.Background(), true)
			return trimmed
		}()
		choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill}
		for seed := range uint64(10) {
			choices = append(choices, crashfs.Random(seed))
		}
		for _, choice := range choices {
			for _, rebuilt := range []bool{false, true} {
				left := *b
				left.fs = disk.Crash(choice)
				left.open(b.dir.ID)
				if rebuilt {
					_ = left.dir.FS.Remove(ctxfolder.IndexFile)
				}
				entries, err := left.log.Entries(b.line, 0, 1<<40)
				b.must(err)
				n := len(entries)
				if n != 2 && (n != len(before) || trimmed && !rebuilt) {
					t.Fatalf("cut at %d, %v, rebuilt %v: %d messages, trimmed %v", k, choice, rebuilt, n, trimmed)
				}
				left.ids = slices.Clone(before[:n])
				left.shows(n)
				left.must(left.add(1, true))
				left.agrees()
				left.close()
			}
		}
		if !disk.PowerCut() {
			if !trimmed {
				t.Fatal("it failed without a power cut")
			}
			break
		}
	}
}
