package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
)

// news holds what was read from a journal, for the state to take.
type news struct {
	changes    []change
	unfinished []change // the whole records of a last commit that is not whole
	torn       bool     // an interrupted write may have left what follows
	blank      bool     // nothing but blank space follows
}

type change struct {
	head
	off      int64
	address  message.Address     // for an append or replace
	metadata json.RawMessage     // a copy, or a change
	parsed   *ctxfolder.Metadata // what it leads to, nil if that was not parsed yet
	payload  Sum
	trim     *trim
	lost     int64 // damaged records before it
}

// whole reads a folded journal. It fails where records are missing: the fold synced the journal, so no crash tore it.
func (j *journal) whole() (news, error) {
	n, err := j.read(maxSeq, allDurable)
	for i := range n.changes {
		if c := &n.changes[i]; c.lost > 0 && err == nil {
			err = j.gap(c)
		}
	}
	return n, err
}

// wholeBefore reads a folded journal. If the next one has its last record, nothing is missing after that: the next one
// begins there, or it repeats the records since a fold after a failed sync.
func (j *journal) wholeBefore(next *journal) (news, error) {
	n, err := j.whole()
	if err == nil || next == nil || slices.ContainsFunc(n.changes, func(c change) bool { return c.lost > 0 }) {
		return n, err
	}
	last := j.begin.place()
	if k := len(n.changes); k > 0 {
		last = n.changes[k-1].place()
	}
	if next.has(last) {
		return n, nil
	}
	return n, err
}

// readFolded is [journal.wholeBefore] for the journal with a number.
func readFolded(dir *ctxfolder.Dir, gen uint64) (n news, err error) {
	j, err := openJournal(dir, gen, nil)
	if err != nil {
		return n, err
	}
	defer j.f.Close()
	next, _ := openJournal(dir, gen+1, nil)
	if next != nil {
		defer next.f.Close()
	}
	return j.wholeBefore(next)
}

// allDurable is the proof of folded records: the fold synced them.
func allDurable([]change, uint64) bool { return true }

// read parses the records after the last known one, up to number limit. durable, if it is not nil, has proofs besides
// those in the journal that a record which is not whole was durable; it is passed the records before that one.
func (j *journal) read(limit uint64, durable func(before []change, seq uint64) bool) (n news, err error) {
	var lost int64
	var proven proof
	if durable != nil {
		proven = func(seq uint64) bool { return durable(n.changes, seq) }
	}
	end, clean, err := j.scan(j.end, j.seq, j.chain, proven, func(rec record) error {
		if rec.seq > limit {
			return nil
		}
		c := change{lost: lost}
		lost = 0
		if err := c.parse(j, rec); err != nil {
			return err
		}
		n.changes = append(n.changes, c)
		return nil
	}, func(records uint64) { lost += int64(min(records, maxSeq)) })
	n.dropUnfinished()
	if err != nil || limit < maxSeq {
		return n, err
	}
	n.blank, n.torn = clean && n.unfinished == nil, n.unfinished != nil
	if n.blank || n.torn {
		return n, nil
	}
	size, err := j.size()
	if err != nil {
		return n, err
	}
	r := &reader{f: j.f, size: size}
	defer r.giveBack(r.borrow())
	if n.torn, err = r.torn(end, size); err == nil && !n.torn {
		err = fmt.Errorf("%w: the last record of %s", ErrDamaged, ctxfolder.JournalFile(j.gen))
	}
	return n, err
}

// dropUnfinished drops the records of a commit whose last record is missing: a crash tore it, and nobody acknowledged
// it.
func (n *news) dropUnfinished() {
	k := whole(n.changes)
	if k < len(n.changes) {
		n.changes, n.unfinished = n.changes[:k:k], n.changes[k:]
	}
}

// whole returns how many records there are without those of a last commit that is not whole.
func whole(changes []change) int {
	k := len(changes)
	for k > 0 && changes[k-1].more {
		k--
	}
	return k
}

func (c *change) parse(j *journal, rec record) error {
	c.head, c.off = rec.head, rec.off
	body := rec.body
	whole := func() (err error) {
		if int64(len(body)) < rec.len {
			_, body, err = j.readWhole(rec.off, rec.off+rec.size())
		}
		return err
	}
	switch rec.kind {
	case KindMetadata, KindChange:
		if err := whole(); err != nil {
			return err
		}
		c.metadata = slices.Clone(body)
	case KindAppend, KindReplace:
		var ok bool
		if c.address, ok = message.ParseAddress(body); ok {
			return nil
		}
		if err := whole(); err != nil {
			return err
		}
		env, err := message.ParseTrusted(body)
		if errors.Is(err, message.ErrVersion) {
			return fmt.Errorf("%w: journal %d, record %d: %w", ctxfolder.ErrVersion, j.gen, rec.seq, err)
		}
		if err != nil {
			return fmt.Errorf("%w: journal %d, record %d: %w", ErrDamaged, j.gen, rec.seq, err)
		}
		c.address = env.Address()
	case KindPayload:
		var ok bool
		if c.payload, ok = payloadSum(body); !ok {
			return fmt.Errorf("%w: journal %d, record %d: the payload has no name", ErrDamaged, j.gen, rec.seq)
		}
	case KindTrim:
		if err := whole(); err != nil {
			return err
		}
		t, err := parseTrim(body)
		if err != nil {
			return fmt.Errorf("journal %d, record %d: %w", j.gen, rec.seq, err)
		}
		c.trim = &t
	case KindBegin:
		return fmt.Errorf("%w: journal %d has a second begin record", ErrDamaged, j.gen)
	}
	// An unknown kind says nothing about messages: the store's features would have announced an incompatible one.
	return nil
}

// entry returns the entry of the message that a record commits.
func (c *change) entry(gen uint64) Entry {
	e := entryOf(&c.address, c.head)
	e.seq, e.gen, e.off = c.seq, gen, c.off
	return e
}

// moveBehind makes a record the last known one.
func (j *journal) moveBehind(c *change) {
	j.seq, j.chain, j.last, j.end = c.seq, c.chain, c.off, c.off+c.size()
	j.pass(recordEnd{j.seq, j.end}, c.mark)
}

// gap returns the error about missing records before a record.
func (j *journal) gap(before *change) error {
	return fmt.Errorf("%w: %d records before byte %d of %s are missing", ErrDamaged, before.lost, before.off, ctxfolder.JournalFile(j.gen))
}
