package index

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// copied copies the history to a new disk, for another store.
func (b *bench) copied(ix *Index) (disk *crashfs.FS, to Folder) {
	b.t.Helper()
	disk = crashfs.New()
	must(b.t, disk.Mkdir("segments"))
	to = folderOf(b.t, disk)
	to.Store = uuid.MustParse("01930000-0000-7000-8000-000000000003")
	must(b.t, ix.CopyTo(context.Background(), to))
	return disk, to
}

// TestCopy: a copy has what the history has when it is made, names its own store, and goes on by itself.
func TestCopy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		b := newBench(t, seed)
		for i := range 60 {
			must(t, b.commit())
			switch b.r.IntN(8) {
			case 0:
				must(t, b.ix.Prepare())
				must(t, b.ix.Rotate())
			case 1:
				must(t, sealAll(b.ix))
			case 2:
				must(t, b.ix.Merge(archive.Options{}))
			case 3:
				_, to := b.copied(b.ix)
				ix := Open(to, b.options())
				b.compare(ix, fmt.Sprint("copy ", i))
				if of, err := StoreOf(to.Logs); err != nil || of != to.Store {
					t.Fatalf("the copy is of store %s: %v", of, err)
				}
				at, err := b.ix.At()
				must(t, err)
				if is, err := ix.At(); err != nil || is != at {
					t.Fatalf("the copy ends at %v, wanted %v: %v", is, at, err)
				}
				c := *b
				c.ix, c.model = ix, b.model.clone()
				for range 5 {
					must(t, c.commit())
				}
				must(t, ix.Prepare())
				must(t, ix.Rotate())
				must(t, sealAll(ix))
				c.compare(Open(to, b.options()), fmt.Sprint("copy that went on ", i))
				b.made, b.times = c.made, c.times
			}
		}
	}
}

// TestCopyUnreadable: a part of a segment that cannot be read is damaged in the copy, and nothing else is.
func TestCopyUnreadable(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	for range 20 {
		must(t, b.commit())
	}
	must(t, b.ix.Prepare())
	must(t, b.ix.Rotate())
	must(t, sealAll(b.ix))
	for range 3 {
		must(t, b.commit())
	}
	var file string
	for e, err := range b.disk.ReadDir("segments") {
		must(t, err)
		file = e.Name()
	}
	b.disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRead && o.Path == "segments/"+file {
			return os.ErrInvalid
		}
		return nil
	})
	_, to := b.copied(b.ix)
	b.disk.Fail(nil)
	ix := Open(to, b.options())
	if at, err := ix.At(); err != nil || at != b.ix.state.at {
		t.Errorf("the copy ends at %v: %v", at, err)
	}
	for line, all := range b.model.lines {
		_, err := ix.Entries(line, 0, int64(len(all)))
		must(t, err)
	}
	if problems, err := ix.Problems(); err != nil || len(problems) == 0 {
		t.Errorf("problems %v, %v", problems, err)
	}
}

// TestBuild: what is built shows what was added, also of messages that are gone, of lines in any order, and of a tail; and
// it goes on.
func TestBuild(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		b := newBench(t, seed)
		disk := crashfs.New()
		must(t, disk.Mkdir("segments"))
		built, err := Build(folderOf(t, disk), b.meta)
		must(t, err)
		want, seq := newModel(), uint64(1)
		want.title = b.meta.Title
		var lost []Entry
		for range b.r.IntN(100) {
			line, id := b.anyLine(), b.newID()
			all := want.lines[line]
			position := int64(len(all))
			raw := b.envelope(line, position, id)
			seq++
			switch b.r.IntN(8) {
			case 0:
				must(t, built.Add(Entry{Line: line, Position: position, ID: id, Gone: archive.Erased}, nil))
				raw = nil
			case 1:
				e := Entry{Line: line, Position: position, ID: id, Gone: archive.Lost}
				must(t, built.Add(e, nil))
				lost = append(lost, e)
				raw = nil
			default:
				env, err := message.Parse(raw)
				must(t, err)
				must(t, built.Add(EntryOf(&env, raw), raw))
			}
			want.lines[line] = append(all, shown{id, string(raw)})
		}
		must(t, built.Finish())
		for _, disk := range []*crashfs.FS{disk, disk.Crash(crashfs.Lose)} {
			ix := Open(folderOf(t, disk), b.options())
			for _, l := range lost { // the model takes them for erased
				if e, ok, err := ix.Entry(l.Line, l.Position); err != nil || !ok || !e.IsLost() || e.ID != l.ID {
					t.Fatalf("%+v, %v, wanted %+v", e, err, l)
				}
			}
			if len(lost) == 0 {
				must(t, difference(ix, want, b.r))
			}
			tail, err := ix.Tail(0)
			must(t, err)
			var kinds []journal.Kind
			for {
				rec, ok, err := tail.Next()
				must(t, err)
				if !ok {
					break
				}
				kinds = append(kinds, rec.Kind)
			}
			tail.Close()
			if uint64(len(kinds)) != seq || kinds[0] != journal.Metadata || slices.Contains(kinds[1:], journal.Metadata) {
				t.Fatalf("%d records, wanted %d: %v", len(kinds), seq, kinds)
			}
			c := *b
			c.ix, c.model, c.meta = ix, want.clone(), b.meta
			c.model.kept = b.model.kept
			for range 5 {
				must(t, c.commit())
			}
			must(t, ix.Prepare())
			must(t, ix.Rotate())
			must(t, sealAll(ix))
			if len(lost) == 0 {
				c.compare(Open(folderOf(t, disk), b.options()), fmt.Sprint("seed ", seed))
			}
			ix.Close()
		}
	}
}
