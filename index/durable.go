package index

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"

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
// later writes to them and syncs, and reads zero bytes after a restart. So a process leaves a file, the doubt, before it
// makes the journal longer, and removes it after a sync that covers what it wrote. A process that finds the doubt of
// another one, which may have been told of a failure, replaces the journal by a copy: see [Log.replaceDoubted]. The
// doubt need not survive a restart: then the file shows what the disk has.

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
	if err := j.sync.wait(j.datasync, end); err != nil {
		j.leaveDoubt()
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	return nil
}

// doubt is the file that tells other processes that blocks of the journal may not keep what is written to them: a sync
// since this process made the file longer has not succeeded yet, or has failed. Each descriptor has a name of its own,
// so that no process removes the doubt of another one.
type doubt struct {
	mu   sync.Mutex
	name string // empty if there is none
	left int    // how often the process had a reason for it
}

// datasync syncs the journal, and removes the doubt that was there before if the sync succeeds.
func (j *journal) datasync() error {
	j.doubt.mu.Lock()
	before := j.doubt.left
	j.doubt.mu.Unlock()
	err := j.f.Datasync()
	j.doubt.mu.Lock()
	defer j.doubt.mu.Unlock()
	if err == nil && j.doubt.name != "" && j.doubt.left == before {
		j.doubt.removeName(j.dir)
	}
	return err
}

// leaveDoubt tells other processes that blocks of the journal may not keep what is written to them, if there is room for
// a name. It reports whether no doubt of this descriptor was there before. On Windows nobody could replace the journal
// while it is open.
func (j *journal) leaveDoubt() (first bool) {
	if runtime.GOOS == "windows" {
		return false
	}
	d := j.doubt
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left++; d.name != "" {
		return false
	}
	name := ctxfolder.NewDoubt(j.gen)
	f, err := j.dir.FS.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err == nil {
		d.name = name
		_ = f.Close()
	}
	return err == nil
}

// remove removes the doubt.
func (d *doubt) remove(dir *ctxfolder.Dir) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeName(dir)
}

// removeName is remove for the holder of mu. A doubt that stays costs a copy of the journal.
func (d *doubt) removeName(dir *ctxfolder.Dir) {
	if err := dir.FS.Remove(d.name); err == nil || errors.Is(err, fs.ErrNotExist) {
		d.name = ""
	}
}

// doubts returns the names of all doubts about a journal.
func doubts(dir *ctxfolder.Dir, gen uint64) (names []string, err error) {
	for e, err := range dir.FS.ReadDir(".") {
		if err != nil {
			return nil, err
		}
		if ctxfolder.IsDoubt(e.Name(), gen) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// removeDoubts removes all doubts about a journal that is gone.
func (l *Log) removeDoubts(gen uint64) error {
	names, err := doubts(l.dir, gen)
	for _, name := range names {
		err = cmp.Or(err, l.remove(name))
	}
	return err
}

// errDoubted means that a sync through this descriptor may prove nothing, since the journal became longer before it was
// opened and no sync has succeeded since, as far as is known.
var errDoubted = errors.New("the last sync of another process may have failed")

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
		return fmt.Errorf("%w: cannot replace %s, whose last sync may have failed: %w", ErrDurability, name, err)
	}
	if err := l.reload(); err != nil {
		return err
	}
	if now := l.state.newest(); now.gen == j.gen && !l.state.unsaved {
		now.setDurable()
	}
	return l.removeDoubts(j.gen)
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
	if names, err := doubts(j.dir, j.gen); err != nil || len(names) > 0 {
		return fmt.Errorf("%w: %s: %w", ErrDurability, ctxfolder.JournalFile(j.gen), cmp.Or(err, errDoubted))
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
