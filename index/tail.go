package index

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// ErrGap reports that requested records are in no journal any more, or not yet, or are damaged.
var ErrGap = errors.New("the journals do not have these records")

// Spot is a place between two records of a context's journals: after record number Seq. Chain distinguishes histories
// that a crash made differ.
type Spot struct {
	Seq   uint64
	Chain uint64
}

// Record is a record that a Tail returns.
type Record struct {
	Seq  uint64
	Kind Kind
	Body []byte // valid until the next call
}

// Tail follows a context. It reads the records of the journals in order, as they are committed. It keeps the counts of
// each line and the newest metadata. Unlike a [Log] it repairs nothing: where records are missing it fails with
// [ErrGap], and the follower begins again at the end. A Tail may read a record shortly before it is durable.
type Tail struct {
	dir *ctxfolder.Dir
	j   *journal
	r   reader
	buf *[]byte // of r, for giveBack
	off int64   // after the last record read
	at  Spot

	inGroup bool   // the last record read is not the last one of its commit
	commit  uint64 // the number of the last record before that commit

	lines map[uuid.UUID]Counts
	meta  *ctxfolder.Metadata // of the newest metadata record, else of the begin record; nil if neither is usable
}

// FollowEnd begins after the last existing record.
func FollowEnd(dir *ctxfolder.Dir) (*Tail, error) {
	t, err := follow(dir, func(*Tail) bool { return true })
	if err != nil {
		return nil, err
	}
	t.skipFolded(math.MaxUint64)
	for more := true; more && err == nil; {
		if t.off, _, err = t.j.scan(t.off, t.at.Seq, t.at.Chain, nil, t.pass, nil); err == nil {
			var ok, on bool
			_, ok, on, err = t.nextJournal()
			more = ok || on
		}
	}
	if err == nil && t.inGroup { // the last commit is not whole, or not yet
		before := t.commit
		t.Close()
		return FollowFrom(dir, before)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// FollowFrom begins after record seq. It fails with [ErrGap] if the journals have only newer or only older records.
func FollowFrom(dir *ctxfolder.Dir, seq uint64) (*Tail, error) {
	t, err := follow(dir, func(t *Tail) bool { return t.at.Seq <= seq })
	if err != nil {
		return nil, err
	}
	t.skipFolded(seq)
	ok, err := t.passUpTo(seq)
	for err == nil && !ok {
		var more, on bool
		if _, more, on, err = t.nextJournal(); err == nil && !more && !on {
			err = fmt.Errorf("%w: record %d does not exist yet", ErrGap, seq)
		}
		if err == nil {
			ok, err = t.passUpTo(seq)
		}
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// follow begins at the newest suitable journal that index.json names. The Tail enters newer ones from there.
func follow(dir *ctxfolder.Dir, will func(t *Tail) bool) (*Tail, error) {
	const looks = 8
	for look := 1; ; look++ {
		gens, err := journalsToFollow(dir, look == looks)
		if err != nil {
			return nil, err
		}
		gone := false
		for _, gen := range slices.Backward(gens) {
			t, err := followIn(dir, gen)
			if errors.Is(err, fs.ErrNotExist) {
				gone = true // preallocated, or a fold removed it meanwhile
				continue
			}
			if err != nil || will(t) {
				return t, err
			}
			t.Close()
		}
		if !gone || look == looks {
			return nil, fmt.Errorf("%w: every journal begins later", ErrGap)
		}
	}
}

// journalsToFollow returns the journals that index.json names, or all that exist with all or without a readable
// index.json.
func journalsToFollow(dir *ctxfolder.Dir, all bool) ([]uint64, error) {
	x, err := readIndexFile(dir)
	if all || errors.Is(err, ErrDamaged) {
		return generations(dir)
	}
	if err != nil {
		return nil, err
	}
	return x.Journals, nil
}

// Resume continues where a Tail was. It fails with [ErrGap] as [FollowFrom] does, and if the history is another one.
func Resume(dir *ctxfolder.Dir, at Spot) (*Tail, error) {
	t, err := FollowFrom(dir, at.Seq)
	if err == nil && t.at != at {
		t.Close()
		return nil, fmt.Errorf("%w: record %d belongs to another history", ErrGap, at.Seq)
	}
	return t, err
}

// followIn begins at the start of a journal.
func followIn(dir *ctxfolder.Dir, gen uint64) (*Tail, error) {
	j, err := openJournal(dir, gen, nil)
	if err != nil {
		return nil, err
	}
	t := &Tail{dir: dir}
	t.enter(j)
	return t, nil
}

// enter moves to the first record of a journal.
func (t *Tail) enter(j *journal) {
	if t.j != nil {
		_ = t.j.f.Close()
	}
	t.j, t.off, t.at = j, j.first, Spot{j.seq, j.chain}
	if m, err := ctxfolder.ParseMetadata(j.begin.Metadata); err == nil {
		t.meta = m
	}
	t.lines = make(map[uuid.UUID]Counts, len(j.begin.Lines))
	for _, c := range j.begin.Lines {
		t.lines[c.Line] = c
	}
	t.ReleaseBuffer()
	t.r.f = j.f
}

// skipFolded moves to the last record that index.json counts, if this journal has it and its number is at most seq.
func (t *Tail) skipFolded(seq uint64) {
	x, err := readIndexFile(t.dir)
	if err != nil || x.Live != t.j.gen || x.Seq > seq {
		return
	}
	if t.j.skipFolded(x); t.j.last == 0 {
		return
	}
	t.off, t.at, t.lines = t.j.end, x.place(), make(map[uuid.UUID]Counts, len(x.Lines))
	for _, ln := range x.Lines {
		t.lines[ln.Line] = ln.Counts
	}
	if m, err := ctxfolder.ParseMetadata(x.Metadata); err == nil {
		t.meta = m
	}
}

// ReleaseBuffer releases the buffer, for a while without reads.
func (t *Tail) ReleaseBuffer() {
	if t.buf != nil {
		t.r.giveBack(t.buf)
	}
	t.buf, t.r = nil, reader{f: t.r.f}
}

// Close closes the journal.
func (t *Tail) Close() {
	t.ReleaseBuffer()
	_ = t.j.f.Close()
}

// At returns the place after the last record that the Tail returned.
func (t *Tail) At() Spot { return t.at }

// Journal returns the generation of the current journal.
func (t *Tail) Journal() uint64 { return t.j.gen }

// Metadata returns the metadata as of this place, nil if no journal has it. It must not be changed.
func (t *Tail) Metadata() *ctxfolder.Metadata { return t.meta }

// Counts returns the counts of each line at this place. They are valid until the next call.
func (t *Tail) Counts() map[uuid.UUID]Counts { return t.lines }

// pass applies a record.
func (t *Tail) pass(rec record) error {
	var c change
	if err := c.parse(t.j, rec); err != nil {
		return err
	}
	switch {
	case c.metadata != nil:
		m, err := metadataAfter(t.meta, c.kind, c.metadata)
		switch {
		case err == nil:
			t.meta = m
		case c.kind == KindChange: // the follower begins again, with a copy
			return fmt.Errorf("%w: record %d: %w", ErrGap, rec.seq, err)
		}
	case c.trim != nil:
		ln := t.lines[c.trim.Line]
		ln.Count, ln.Bytes, ln.Last = max(c.trim.End-ln.Base, 0), c.trim.Bytes, c.trim.Last
		t.lines[c.trim.Line] = ln
	case rec.kind == KindAppend || rec.kind == KindReplace:
		t.count(&c)
	}
	if !t.inGroup {
		t.commit = t.at.Seq
	}
	t.off, t.at, t.inGroup = rec.off+rec.size(), Spot{rec.seq, rec.chain}, rec.more
	return nil
}

// count counts a message, or another version of one.
func (t *Tail) count(c *change) {
	a := &c.address
	ln, ok := t.lines[a.Line]
	if !ok {
		ln = Counts{Line: a.Line, Base: a.Position}
	}
	ln.bound(a.ID)
	switch {
	case c.kind == KindReplace:
		ln.Bytes = max(ln.Bytes+c.len-c.was, 0)
	case a.Position >= ln.End():
		ln.Count, ln.Bytes, ln.Last = a.Position+1-ln.Base, ln.Bytes+c.len, a.ID
	}
	t.lines[a.Line] = ln
}

// Next reads the next record. ok is false if there is none yet. If records are missing, it fails with [ErrGap].
func (t *Tail) Next() (rec Record, ok bool, err error) {
	for {
		r, ok, err := t.nextHere()
		if err == nil && !ok {
			var on bool
			if r, ok, on, err = t.nextJournal(); on {
				continue
			}
		}
		if err != nil || !ok {
			return rec, false, err
		}
		body, err := t.body(r)
		if err != nil {
			return rec, false, err
		}
		if err := t.pass(r); err != nil {
			return rec, false, err
		}
		return Record{r.seq, r.kind, body}, true, nil
	}
}
