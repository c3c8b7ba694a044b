package index

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Item is one record to commit.
type Item struct {
	Kind     Kind
	Envelope *message.Envelope   // for an append or replace
	Body     []byte              // the envelope's bytes, or the metadata: see [Log.MetadataItem]
	Was      int64               // for a replace: the size of the previous version
	Metadata *ctxfolder.Metadata // for metadata: what Body leads to; it must not change any more. nil parses Body
	Sum      Sum                 // for a payload: its name
	Payload  []byte              // the payload itself
}

// Commit holds the records that Append wrote. The caller must not acknowledge them before Wait returns nil.
type Commit struct {
	log     *Log
	journal *journal
	// Written counts the items that the journal holds whole, from the first on. Err is the reason why the others were
	// not written.
	Written int
	Err     error
	Entries []Entry // of the written items; zero for metadata

	last Spot  // the place after the last record
	end  int64 // where that record ends in the journal
}

// Prepare brings the log up to date before an append and repairs what the last writer left torn. The caller holds the
// context lock.
func (l *Log) Prepare() error {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.prepare(false)
}

// Ready reports whether an append needs no Prepare, provided that nobody else held the context lock since the last one.
func (l *Log) Ready() bool {
	l.advance.Lock()
	defer l.advance.Unlock()
	if l.state == nil || l.state.unsaved {
		return false
	}
	j := l.state.newest()
	return j.checked && j.covered && j.sync.err() == nil
}

// prepare is Prepare for the holder of advance. foldLocked says whether that holder has the fold lock too.
func (l *Log) prepare(foldLocked bool) error {
	err := l.prepareOnce(foldLocked)
	if errors.Is(err, errChanged) {
		if err = l.reload(); err == nil {
			err = l.prepareOnce(foldLocked)
		}
	}
	return err
}

func (l *Log) prepareOnce(foldLocked bool) error {
	unchanged, err := l.follow()
	if err != nil {
		return err
	}
	if l.state.unsaved {
		if err := l.save(foldLocked); err != nil {
			return fmt.Errorf("writing the rebuilt index of %s: %w", l.dir.ID, err)
		}
	}
	before := l.state.newest()
	if before.sync.err() != nil {
		err = l.recommit()
	}
	if err == nil {
		err = l.state.newest().cover()
	}
	if errors.Is(err, errDoubted) {
		if err = l.replaceDoubted(); err == nil {
			err = l.state.newest().cover()
		}
	}
	if err != nil {
		return err
	}
	if l.state.unsaved { // a reload found damage, and this state has no end to continue at
		return errChanged
	}
	j := l.state.newest()
	unchanged = unchanged && j == before
	if !unchanged && !j.unchanged() {
		blank, err := j.blankBehind(j.end)
		if err == nil && !blank {
			if err = l.state.judge(j); errors.Is(err, ErrDamaged) {
				return errChanged // a reload rebuilds
			}
			if err == nil {
				err = l.cutTail(j)
			}
		}
		if j.checked = err == nil; err != nil {
			return err
		}
	}
	if j.begin.Version != journalVersion {
		return l.renew(roomy)
	}
	return nil
}

// cutTail removes the torn bytes after the last whole record. They were never acknowledged: see [state.judge].
//
// Crash order: a copy is durable in the trash first. Until the cut is durable, the next writer finds the same tail
// again; after that it finds blank space.
func (l *Log) cutTail(j *journal) error {
	tail, err := vfs.ReadData(j.f, j.end, 64<<20)
	if err == nil && len(tail) > 0 {
		err = ctxfolder.TrashBytes(l.dir, ctxfolder.TrashTail, ctxfolder.JournalFile(j.gen), tail)
	}
	if err != nil {
		return err
	}
	if err := j.cut(j.end); err != nil {
		return err
	}
	blank := bytes.Repeat([]byte{'\n'}, space(j.end))
	j.leaveDoubt()
	if _, err := j.f.WriteAt(blank, j.end); err != nil {
		return err
	}
	if err := j.syncTo(j.end); err != nil {
		return err
	}
	j.allocated = j.end + int64(len(blank))
	return nil
}

// cut truncates the journal but keeps one byte after a record, which a newline then replaces. A full disk may have no
// room for a new byte, and a journal that ends right after a record looks cut short.
func (j *journal) cut(end int64) error {
	if err := j.f.Truncate(end + 1); err != nil {
		return err
	}
	j.allocated = end + 1
	return nil
}

// Append writes records for the items after the last record, in one write. The caller holds the context lock and has
// called Prepare under it. Other processes can see the records from now on. They are committed when Commit.Wait, which
// needs no lock, returns nil. Each record stands for itself: a crash may leave the first ones.
func (l *Log) Append(items []Item) *Commit { return l.append(items, false) }

// AppendGroup is [Log.Append] for items that belong together: all of them are committed, or none.
func (l *Log) AppendGroup(items []Item) *Commit { return l.append(items, true) }

func (l *Log) append(items []Item, group bool) *Commit {
	l.advance.Lock()
	defer l.advance.Unlock()
	s := l.state
	if s.unsaved || !s.newest().covered {
		// A read since Prepare found damaged rows. The numbers of the rebuilt state are not those of the journal.
		return &Commit{log: l, Err: ErrBusy}
	}
	j := s.newest()
	c := &Commit{log: l, journal: j}
	b, records, err := s.encode(items, group)
	if err == nil {
		records, err = j.write(b, records, group, !l.opts.Relaxed)
	}
	c.Written, c.Err = len(records), err
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.seq != s.ownTo {
		s.ownFrom = s.seq + 1
	}
	if err := s.take(j, news{changes: records}); err != nil {
		c.Written, c.Err = 0, err
		return c
	}
	s.ownTo = s.seq
	for i := range records {
		var e Entry
		if r := &records[i]; r.address.Line != uuid.Nil {
			e = r.entry(j.gen)
		}
		c.Entries = append(c.Entries, e)
	}
	c.end, c.last = j.end, Spot{s.seq, s.chain}
	return c
}

// encode returns the records of items as the newest journal is to hold them, and what they change.
func (s *state) encode(items []Item, group bool) (b []byte, records []change, err error) {
	j := s.newest()
	mark, seq, chain := j.durableSeq(), s.seq, s.chain
	size := 0
	for _, it := range items {
		size += headSize + len(it.Body) + tailSize
	}
	if end := j.end + int64(size); end >= j.allocated {
		size += space(end) // write adds it
	}
	b, records = make([]byte, 0, size), make([]change, 0, len(items))
	for i, it := range items {
		r := change{off: j.end + int64(len(b))}
		h := head{seq: seq + 1, mark: mark, prev: chain, kind: it.Kind, len: int64(len(it.Body)), was: it.Was, sum: bodySum(it.Body)}
		h.more = group && i+1 < len(items)
		b, r.head = appendRecord(b, h, it.Body)
		switch it.Kind {
		case KindMetadata, KindChange:
			r.metadata, r.parsed = it.Body, it.Metadata
		case KindPayload:
			r.payload = it.Sum
		case KindTrim:
			t, err := parseTrim(it.Body)
			if err != nil {
				return nil, nil, err
			}
			r.trim = &t
		default:
			r.address = it.Envelope.Address()
		}
		records = append(records, r)
		seq, chain = r.seq, r.chain
	}
	return b, records, nil
}

// write writes records, which b holds, after the last record. It returns those that the journal then holds whole: of a
// group, all or none.
//
// Crash order: with durably, there is a doubt before the file becomes longer, until a sync has succeeded. A failed write
// is cut off at once, so that the next record follows a whole one. The cut touches nothing that was synced. If the cut
// fails, no sync of this journal succeeds any more, and the log begins a new one.
func (j *journal) write(b []byte, records []change, group, durably bool) (written []change, err error) {
	size := len(b)
	end := j.end + int64(size)
	doubted := false
	if j.isFull(end) { // a journal without blank space after its last record counts as cut short
		if durably {
			doubted = j.leaveDoubt()
		}
		b = append(b, bytes.Repeat([]byte{'\n'}, space(end))...)
	}
	n, err := j.f.WriteAt(b, j.end)
	if n >= size { // at most preallocated space is missing
		j.allocated = max(j.allocated, j.end+int64(n))
		return records, nil
	}
	whole := j.end
	for i := 0; !group && i < len(records) && records[i].off+records[i].size() <= j.end+int64(n); i++ {
		written, whole = records[:i+1], records[i].off+records[i].size()
	}
	// There may be a rest even where n is 0: os.File.WriteAt does not count a part before the part that failed.
	before := j.allocated
	if cerr := j.cut(whole); cerr != nil {
		j.sync.fail(cerr)
	} else if doubted && whole < before {
		j.doubt.remove(j.dir) // the file is not longer; a full disk may have no room for a copy
	}
	_, _ = j.f.WriteAt([]byte{'\n'}, whole)
	return written, fmt.Errorf("writing %s: %w", ctxfolder.JournalFile(j.gen), cmp.Or(err, io.ErrShortWrite))
}

// Barrier returns a commit without records. Its Sync covers every record known so far. The caller holds the context
// lock and has called Prepare under it.
func (l *Log) Barrier() *Commit {
	l.advance.Lock()
	defer l.advance.Unlock()
	return l.barrier()
}

// barrier is Barrier for the holder of advance.
func (l *Log) barrier() *Commit {
	j := l.state.newest()
	if err := j.cover(); err != nil { // Prepare did this, unless the journal was reopened since
		j.sync.fail(err)
	}
	return &Commit{log: l, journal: j, end: j.end}
}

// ReplacedDurably reports whether every record that replaces a message or the metadata is durable, as far as this
// handle knows. Otherwise a power cut may bring back what it replaced.
func (l *Log) ReplacedDurably() bool {
	l.advance.Lock()
	defer l.advance.Unlock()
	j := l.state.newest()
	j.durableSeq()
	return j.replaced <= max(j.first, j.durable.end)
}

// Journal returns the generation of the journal that holds the records.
func (c *Commit) Journal() uint64 { return c.journal.gen }

// Wait returns nil when the records are durable: a sync that began after they were written succeeded. The error wraps
// ErrDurability; the records may or may not survive a crash. Wait needs no lock and cannot be cancelled.
func (c *Commit) Wait() error {
	if c.log.opts.Relaxed {
		return nil
	}
	return c.Sync()
}

// Sync is Wait, but syncs even where the log is relaxed.
func (c *Commit) Sync() error { return c.journal.syncTo(c.end) }
