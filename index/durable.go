package index

import (
	"errors"
	"fmt"

	ctxfolder "github.com/ctxdir/ctxdir/context"
)

// This file tracks which records of a journal are durable.
//
// Linux reports a failed write once to each descriptor that is open at that moment. It reports the failure to a
// descriptor opened later only if no other descriptor received it. The data stays in memory as if it were on disk, and
// later syncs succeed. So a sync covers a record only if the record was written after the descriptor was opened. Any
// other record needs a mark that proves it durable: each record carries the number of the last record known to its
// writer as durable.
//
// A writer that opens a journal therefore rewrites the records above the newest mark: the same bytes in the same place.
// The fdatasync of its own record then covers them.

// recordEnd is where a record ends in its journal.
type recordEnd struct {
	seq uint64
	end int64
}

// pass appends a record to the unproven ones and applies its mark.
func (j *journal) pass(p recordEnd, mark uint64) {
	j.unproven = append(j.unproven, p)
	j.advanceDurable(func(p recordEnd) bool { return p.seq <= mark })
}

// advanceDurable moves the durable records out of unproven.
func (j *journal) advanceDurable(durable func(recordEnd) bool) {
	n := 0
	for n < len(j.unproven) && durable(j.unproven[n]) {
		j.durable = j.unproven[n]
		n++
	}
	j.unproven = j.unproven[n:]
}

// durableSeq returns the number up to which every record is known to be durable. The records of earlier journals are
// durable: renew syncs them first.
func (j *journal) durableSeq() uint64 {
	j.advanceDurable(func(p recordEnd) bool { return j.sync.covers(p.end) })
	return j.durable.seq
}

// isDurable reports whether every known record of the journal, the begin record included, is durable.
func (j *journal) isDurable() bool {
	j.durableSeq()
	return len(j.unproven) == 0 && j.durable.end >= j.first
}

// makeDurable syncs the journal unless every known record is durable. The caller holds the context lock.
func (j *journal) makeDurable() error {
	if j.isDurable() {
		return nil
	}
	if err := j.cover(); err != nil {
		return err
	}
	return j.syncTo(j.end)
}

// syncTo returns nil once a sync that began after the call has succeeded. The caller wrote or read the file up to end.
func (j *journal) syncTo(end int64) error {
	if err := j.sync.wait(j.f.Datasync, end); err != nil {
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	return nil
}

// setDurable notes that this process made the whole journal durable before it opened the file.
func (j *journal) setDurable() { j.durable, j.unproven, j.covered = recordEnd{j.seq, j.end}, nil, true }

// errChanged means that a journal no longer holds what was read from it: the kernel dropped what it could not write.
var errChanged = errors.New("the journal has changed")

// cover rewrites the unproven records, once for each descriptor, so that a sync through this descriptor covers them.
// The caller holds the context lock. It fails with errChanged when the journal no longer holds what was read.
//
// Crash order: the bytes do not change. Whichever sectors reach the disk, each holds what it held or should hold.
func (j *journal) cover() error {
	if j.durableSeq(); j.covered {
		return nil
	}
	end, chain := j.durable.end, j.chain
	for end < j.end {
		h, b, err := j.readRecord(end, j.end)
		if errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%w: %w", errChanged, err)
		}
		if err == nil {
			_, err = j.f.WriteAt(b, end)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", ctxfolder.JournalFile(j.gen), err)
		}
		end, chain = end+h.size(), h.chain
		if h.kind == KindBegin {
			chain = j.begin.chain
		}
	}
	if end != j.end || chain != j.chain {
		return fmt.Errorf("%w: %s", errChanged, ctxfolder.JournalFile(j.gen))
	}
	j.covered = true
	return nil
}
