package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// nextHere reads the next record of this journal.
func (t *Tail) nextHere() (rec record, ok bool, err error) {
	if t.buf == nil {
		t.buf = t.r.borrow()
	}
	for range 2 { // the buffer may be older than the record
		if rec, ok, err = t.r.whole(t.off); err != nil || ok && rec.seq == t.at.Seq+1 && rec.prev == t.at.Chain {
			if err != nil || !rec.more || t.inGroup {
				return rec, ok, err
			}
			if ok, err = t.groupIsWhole(rec); err != nil || !ok {
				return record{}, false, err
			}
			return t.r.whole(t.off)
		}
		t.r.forget()
		if t.r.size, err = t.j.size(); err != nil {
			return rec, false, err
		}
	}
	return rec, false, nil
}

// groupIsWhole reports whether the commit that begins with a record has its last record.
func (t *Tail) groupIsWhole(rec record) (bool, error) {
	for rec.more {
		next, ok, err := t.r.whole(rec.off + rec.size())
		if err != nil || !ok || next.seq != rec.seq+1 || next.prev != rec.chain {
			t.r.forget()
			return false, err
		}
		rec = next
	}
	return true, nil
}

// body returns the whole body of a record, of which rec may have only the first bytes.
func (t *Tail) body(rec record) (body []byte, err error) {
	if int64(len(rec.body)) == rec.len {
		return rec.body, nil
	}
	_, body, err = t.j.readWhole(rec.off, rec.off+rec.size())
	return body, err
}

// passUpTo passes the records of this journal up to a number. ok is false if they end before.
func (t *Tail) passUpTo(seq uint64) (ok bool, err error) {
	for t.at.Seq < seq {
		rec, ok, err := t.nextHere()
		if err != nil || !ok {
			return false, err
		}
		if err := t.pass(rec); err != nil {
			return false, err
		}
	}
	return true, nil
}

// nextJournal determines why there is no next record here: there is none yet, or it is damaged, or it is in the next
// journal, which nextJournal then enters (on).
func (t *Tail) nextJournal() (rec record, ok, on bool, err error) {
	next, err := openJournal(t.dir, t.j.gen+1, nil)
	if errors.Is(err, fs.ErrNotExist) {
		on, err = t.checkLost()
		return rec, false, on, err
	}
	if err != nil {
		return rec, false, false, err
	}
	// A rotation holds the lock, so this journal is final now.
	if rec, ok, err = t.nextHere(); err != nil || ok {
		_ = next.f.Close()
		return rec, ok, false, err
	}
	// After a failed sync the next journal repeats what was whole in this one.
	ahead := &Tail{dir: t.dir}
	ahead.enter(next)
	if ok, err = ahead.passUpTo(t.at.Seq); err == nil && ok && ahead.at == t.at {
		t.replaceBy(ahead)
		return rec, false, true, nil
	}
	ahead.Close()
	if err == nil {
		err = t.checkEnd()
	}
	if err != nil {
		return rec, false, false, err
	}
	on, err = t.checkLost()
	return rec, false, on, err
}

// replaceBy replaces t by another Tail at the same place.
func (t *Tail) replaceBy(to *Tail) {
	t.Close()
	*t = *to
}

// checkEnd fails with [ErrGap] if the journal lost its end: then nothing shows whether the next one continues it.
func (t *Tail) checkEnd() error {
	size, err := t.j.size()
	if err != nil {
		return err
	}
	if blank, err := t.j.blankBehind(t.off); err != nil || blank && size > t.off {
		return err
	}
	return fmt.Errorf("%w: the end of %s is damaged", ErrGap, ctxfolder.JournalFile(t.j.gen))
}

// checkLost determines whether the next record will never appear here: it is damaged, or this journal was removed and a
// later one continues, which checkLost then enters (on).
func (t *Tail) checkLost() (on bool, err error) {
	b, err := t.r.bytes(t.off, 1)
	if err != nil {
		return false, err
	}
	if len(b) == 1 && b[0] != '\n' && b[0] != 0 {
		// A whole record follows a broken one: either is damaged, unless a crash tore what was never acknowledged. The broken
		// one may end a commit.
		off, at := t.off, t.at
		for more := true; more; {
			rec, ok, err := t.r.whole(off)
			if err != nil {
				return false, err
			}
			if more = ok && rec.more && rec.seq == at.Seq+1 && rec.prev == at.Chain; more {
				off, at = off+rec.size(), rec.place()
			}
		}
		if rec, ok, err := t.r.resume(off, at.Seq, nil); err != nil || ok && (rec.off != off || rec.prev != at.Chain) {
			return false, cmp.Or(err, fmt.Errorf("%w: damage before byte %d of %s", ErrGap, rec.off, ctxfolder.JournalFile(t.j.gen)))
		}
	}
	if err := t.j.exists(t.dir); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// Others continued in later journals and removed those between, maybe without a record in them.
	next, err := Resume(t.dir, t.at)
	if err != nil {
		return false, err
	}
	t.replaceBy(next)
	return true, nil
}
