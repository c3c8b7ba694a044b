package index

import (
	"bytes"
	stdcontext "context"
	"os"
	"slices"
	"testing"
)

// TestOffsetIsVerified: a reader begins after the record at the offset in index.json only if that record is the one
// that index.json counts last. Otherwise it reads the journal from its beginning.
func TestOffsetIsVerified(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	defer b.close()
	for range 3 {
		b.must(b.add(1, true))
	}
	b.must(b.log.Fold(stdcontext.Background(), false))
	b.must(b.add(1, true))
	x := b.index()
	if x.Offset == 0 {
		t.Fatal("the fold left no offset")
	}
	for name, c := range map[string]struct {
		change func(x *indexFile)
		skips  bool
	}{
		"as it is":             {func(*indexFile) {}, true},
		"another number":       {func(x *indexFile) { x.Seq++ }, false},
		"of another history":   {func(x *indexFile) { x.chain++ }, false},
		"within a record":      {func(x *indexFile) { x.Offset++ }, false},
		"at begin":             {func(x *indexFile) { x.Offset = 0 }, false},
		"negative":             {func(x *indexFile) { x.Offset = -1 }, false},
		"behind the file":      {func(x *indexFile) { x.Offset = 1 << 40 }, false},
		"in blank space":       {func(x *indexFile) { x.Offset = b.end() }, false},
		"of the next record":   {func(x *indexFile) { x.Offset += x.recordLength(b) }, false},
		"of the record before": {func(x *indexFile) { x.Offset -= x.recordLength(b) }, false},
	} {
		x := *x
		c.change(&x)
		j, err := openJournal(b.dir, x.Live, nil)
		b.must(err)
		first := j.end
		j.skipFolded(&x)
		switch {
		case c.skips && (j.seq != x.Seq || j.chain != x.chain || j.end <= first || j.durable != (recordEnd{x.Seq, j.end})):
			t.Errorf("%s: at record %d, byte %d, durable %+v", name, j.seq, j.end, j.durable)
		case !c.skips && (j.end != first || j.last != 0 || j.seq != j.begin.Seq):
			t.Errorf("%s: skipped to record %d, byte %d", name, j.seq, j.end)
		}
		b.must(j.f.Close())
	}
}

// recordLength returns the length of the record that x counts last; the others are as long.
func (x *indexFile) recordLength(b *bench) int64 { return (b.end() - x.Offset) / 2 }

// TestMarksAfterAFold: a writer that begins after the folded records knows these to be durable, and no later one.
func TestMarksAfterAFold(t *testing.T) {
	t.Parallel()
	b, disk := newCrashBench(t)
	b.commit(false)
	b.must(b.log.Fold(stdcontext.Background(), false))
	relaxed := b.process(disk)
	relaxed.log.opts.Relaxed = true
	relaxed.commit(false)
	b.ids = relaxed.ids
	other := b.process(disk)
	other.commit(false)
	b.ids = other.ids
	if marks := other.marks(); !slices.Equal(marks, []uint64{0, 1, 1}) {
		t.Errorf("marks %d: the second record was not durable before the third", marks)
	}
}

// TestFoldedJournalIsWhole: bytes after the last record of a folded journal are no damage if the next journal begins
// there. A record less is.
func TestFoldedJournalIsWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	defer b.close()
	for range 3 {
		b.must(b.add(1, true))
	}
	b.must(b.rotate())
	b.must(b.add(1, true))
	records := b.used(1)
	journal := func(text string) {
		b.must(os.WriteFile(b.journal(1), []byte(text), 0o600))
	}
	broken := bytes.Clone(records)
	broken[len(broken)-10] ^= 1
	for _, c := range []struct {
		name, text string
		whole      bool
	}{
		{"as it is", string(records) + "\n\n", true},
		{"without blank space", string(records), true},
		{"with a broken record after it", string(records) + `{"chain":"0123"}` + "\n\n", true},
		{"its last record is broken", string(broken) + "\n\n", false},
	} {
		journal(c.text)
		if _, err := readFolded(b.dir, 1); (err == nil) != c.whole {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
