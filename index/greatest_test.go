package index

import (
	"os"
	"path/filepath"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// TestIsNew: no id of a line ever counts as new, whatever happens to its records, and a greater one does.
func TestIsNew(t *testing.T) {
	b := newBench(t)
	var ever []uuid.UUID
	looks := func(when string) {
		t.Helper()
		for i, id := range ever {
			if isNew, err := b.log.IsNew(id); isNew || err != nil {
				t.Errorf("%s: message %d of %d counts as new: %v", when, i, len(ever), err)
			}
		}
		if isNew, err := b.log.IsNew(uuid.Max); !isNew || err != nil {
			t.Errorf("%s: the greatest id does not count as new: %v", when, err)
		}
	}
	add := func(n int) {
		t.Helper()
		b.must(b.add(n, true))
		ever = append(ever, b.ids[len(b.ids)-n:]...)
	}
	looks("empty")
	add(3)
	looks("appended")
	b.reopen()
	looks("read from the journal")
	b.fold(false)
	b.reopen()
	looks("folded")
	add(2)
	b.fold(true)
	b.reopen()
	looks("settled")
	add(2)
	b.trim(4)
	looks("cut")
	b.fold(true)
	b.reopen()
	looks("cut and folded")
	b.trim(0)
	looks("cut to nothing")
	b.fold(true)
	add(3)
	b.fold(true)
	ever = b.ids // a rebuild knows only what there is
	b.must(os.Remove(filepath.Join(b.root, ctxfolder.IndexFile)))
	b.reopen()
	looks("rebuilt")
}

// TestIsNewUnknown: an index without the bound, as of an earlier version, leaves everything to a search, also after
// more messages.
func TestIsNewUnknown(t *testing.T) {
	b := newBench(t)
	b.must(b.add(3, true))
	b.fold(true)
	x := b.index()
	x.Lines[0].Greatest = uuid.Nil
	b.replaceIndex(x)
	b.reopen()
	b.must(b.add(1, true))
	if isNew, err := b.log.IsNew(uuid.Max); isNew || err != nil {
		t.Errorf("%v %v: the index did not say which id is the greatest", isNew, err)
	}
}
