package index

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
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
//
// After a failed sync that may not help. If the file had grown, ext4 does not note that its new blocks have data, takes
// later writes to them and syncs, and reads zero bytes after a restart. So a process that is told of a failure leaves a
// file, the doubt, for the next one, which replaces the journal by a copy: see [Log.replaceDoubted]. The doubt need not
// survive a restart: then the file shows what the disk has.

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
		j.leaveDoubt()
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	return nil
}

// leaveDoubt tells other processes that a sync of the journal has failed, if there is room for a name. On Windows nobody
// could replace the journal while it is open.
func (j *journal) leaveDoubt() {
	if runtime.GOOS == "windows" {
		return
	}
	if f, err := j.dir.FS.OpenFile(ctxfolder.DoubtFile(j.gen), os.O_RDWR|os.O_CREATE); err == nil {
		_ = f.Close()
	}
}

// inDoubt reports whether a sync through this descriptor may prove nothing, since another process was told of a failed
// one before.
func (j *journal) inDoubt() bool {
	if j.covered {
		return false
	}
	_, err := j.dir.FS.Lstat(ctxfolder.DoubtFile(j.gen))
	return err == nil
}

// replaceDoubted replaces the newest journal by a copy, with the same bytes in other blocks. Others find another file in
// its place, and open that. The caller holds the context lock.
//
// Crash order: until the rename is durable, the old file may be there, with all that was acknowledged. The copy was
// durable before, and the doubt goes last.
func (l *Log) replaceDoubted() error {
	j := l.state.newest()
	name := ctxfolder.JournalFile(j.gen)
	err := l.createFile(name, ".tmp", func(f vfs.File) error {
		size, err := j.size()
		if err == nil {
			_, err = io.Copy(f, io.NewSectionReader(j.f, 0, size))
		}
		return err
	}, l.dir.FS.Rename)
	if err == nil {
		err = l.dir.FS.SyncDir(".")
	}
	if err != nil {
		return fmt.Errorf("%w: cannot replace %s after a failed sync: %w", ErrDurability, name, err)
	}
	if err := l.reload(); err != nil {
		return err
	}
	if now := l.state.newest(); now.gen == j.gen && !l.state.unsaved {
		now.setDurable()
	}
	return l.remove(ctxfolder.DoubtFile(j.gen))
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
	if j.inDoubt() {
		return fmt.Errorf("%w: another process could not sync %s", ErrDurability, ctxfolder.JournalFile(j.gen))
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
