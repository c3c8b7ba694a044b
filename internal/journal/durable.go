package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// This file tracks which records of a log are durable.
//
// Linux reports a failed write once to each descriptor that is open at that moment. It reports the failure to a
// descriptor opened later only if no other descriptor received it. The data stays in memory as if it were on disk, and
// later syncs succeed. So a sync covers a record only if the record was written after the descriptor was opened. Any
// other record needs a mark that proves it durable: each record carries the number of the last record known to its
// writer as durable.
//
// A writer that opens a log therefore rewrites the records above the newest mark: the same bytes in the same place. The
// fdatasync of its own record then covers them.
//
// After a failed sync that may not help. If the file had grown, ext4 does not note that its new blocks have data, takes
// later writes to them and syncs, and reads zero bytes after a restart. So a process leaves a file, the suspect mark, before it
// makes the log longer, and removes it after a sync that covers what it wrote. A process whose sync failed, or that finds
// the suspect mark of another one, which may have been told of a failure, replaces the log by a copy: see [Log.Replace]. The
// suspect mark need not survive a restart: then the file shows what the disk has.

// Durable returns the number up to which every record is known to be durable. Those before the log are.
func (l *Log) Durable() uint64 {
	l.advanceDurable(func(p recordEnd) bool { return l.sync.covers(p.end) })
	if l.durable.end < l.first && (l.own || l.covered) && l.sync.covers(l.first) {
		l.durable.end = l.first // the begin record
	}
	return l.durable.seq
}

// IsDurable reports whether every known record of the log, the begin record included, is durable.
func (l *Log) IsDurable() bool {
	l.Durable()
	return len(l.unproven) == 0 && l.durable.end >= l.first
}

// Begun reports whether the begin record is known to be durable.
func (l *Log) Begun() bool {
	l.Durable()
	return l.durable.end >= l.first
}

// Adopt takes over what is known through another descriptor of the same file: which records are durable.
func (l *Log) Adopt(o *Log) {
	if !o.Begun() || !vfs.SameFile(l.info, o.info) {
		return
	}
	l.advanceDurable(func(p recordEnd) bool { return p.end <= o.durable.end })
	l.durable.end = max(l.durable.end, l.first) // the begin record
}

// MakeDurable syncs the log unless every known record is durable. The caller holds the lock of the context.
func (l *Log) MakeDurable() error {
	if l.IsDurable() {
		return nil
	}
	if err := l.Cover(); err != nil {
		return err
	}
	return l.SyncTo(l.end)
}

// SyncTo returns nil once a sync that began after the call has succeeded. The caller wrote or read the file up to end. A
// failed sync is never retried: every later call fails, until the log is replaced.
func (l *Log) SyncTo(end int64) error {
	if err := l.sync.wait(l.datasync, end); err != nil {
		l.markSuspect()
		return fmt.Errorf("%w: %w", ErrDurability, err)
	}
	return nil
}

// Failed returns the error of a sync that failed; nil if none did.
func (l *Log) Failed() error { return l.sync.err() }

const suspectSuffix = ".suspect"

// SuspectOf returns the name of the log that a file marks as suspect. ok is false for other files.
func SuspectOf(name string) (log string, ok bool) {
	s, dotted := strings.CutPrefix(name, ".")
	s, ended := strings.CutSuffix(s, suspectSuffix)
	i := strings.LastIndexByte(s, '.')
	if !dotted || !ended || i < 0 {
		return "", false
	}
	_, ok = ParseName(s[:i])
	return s[:i], ok
}

// datasync syncs the log, and removes the suspect mark that was there before if the sync succeeds.
func (l *Log) datasync() error {
	l.suspect.mu.Lock()
	before := l.suspect.left
	l.suspect.mu.Unlock()
	err := l.f.Datasync()
	l.suspect.mu.Lock()
	defer l.suspect.mu.Unlock()
	if err == nil && l.suspect.name != "" && l.suspect.left == before {
		l.suspect.removeName(l.dir)
	}
	return err
}

// markSuspect tells other processes that blocks of the log may not keep what is written to them, if there is room for a
// name. On Windows nobody could replace the log while it is open.
func (l *Log) markSuspect() {
	if runtime.GOOS == "windows" {
		return
	}
	d := l.suspect
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left++; d.name != "" {
		return
	}
	name := "." + l.name + "." + strconv.FormatUint(rand.Uint64(), 16) + suspectSuffix
	if f, err := l.dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL); err == nil {
		d.name = name
		_ = f.Close()
	}
}

// remove removes the suspect mark.
func (d *suspectMark) remove(dir vfs.FS) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeName(dir)
}

// removeName is remove for the holder of mu. A suspect mark that stays costs a copy of the log.
func (d *suspectMark) removeName(dir vfs.FS) {
	if err := dir.Remove(d.name); err == nil || errors.Is(err, fs.ErrNotExist) {
		d.name = ""
	}
}

// Suspects returns the names of all suspect marks of a log.
func Suspects(dir vfs.FS, log string) (names []string, err error) {
	for e, err := range dir.ReadDir(".") {
		if err != nil {
			return nil, err
		}
		if of, ok := SuspectOf(e.Name()); ok && of == log {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// ErrSuspect means that a sync through this descriptor may prove nothing, since the log became longer before it was
// opened and no sync has succeeded since, as far as is known. [Log.Replace] helps.
var ErrSuspect = errors.New("the last sync of another process may have failed")

// ErrChanged means that a log no longer holds what was read from it: the system dropped what it could not write.
var ErrChanged = errors.New("the log has changed")

// Cover rewrites the unproven records, once for each descriptor, so that a sync through this descriptor covers them. The
// caller holds the lock of the context. The error wraps [ErrSuspect], or [ErrChanged] if the log no longer holds what was
// read.
//
// Crash order: the bytes do not change. Whichever sectors reach the disk, each holds what it held or should hold.
func (l *Log) Cover() error {
	if l.Durable(); l.covered {
		return nil
	}
	if names, err := Suspects(l.dir, l.name); err != nil || len(names) > 0 {
		return fmt.Errorf("%w: %s: %w", ErrDurability, l.name, cmp.Or(err, ErrSuspect))
	}
	at := Position{l.durable.seq, 0}
	end := l.durable.end
	if end == l.end {
		at = l.at
	}
	for end < l.end {
		h, b, err := l.readRecord(end, l.end)
		if errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
		if err == nil {
			_, err = l.f.WriteAt(b, end)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", l.name, err)
		}
		end, at = end+h.Size(), h.Position()
	}
	if end != l.end || at != l.at {
		return fmt.Errorf("%w: %s", ErrChanged, l.name)
	}
	l.covered = true
	return nil
}

// Replace replaces the log by a copy, with the same records in other blocks, and returns the copy, open and read up to the
// same place. What was not whole is not in it. A torn log begins with b. The caller holds the lock of the context, and
// closes l.
//
// Crash order: until the rename is durable, the old file may be there, with all that was acknowledged. The copy was
// durable before, and the suspect marks go last.
func (l *Log) Replace(b Beginning) (*Log, error) {
	fail := func(err error) (*Log, error) {
		return nil, fmt.Errorf("%w: cannot replace %s after a failed sync: %w", ErrDurability, l.name, err)
	}
	var begin []byte
	from := int64(0)
	if l.torn {
		var err error
		if begin, err = b.encode(l.from); err != nil {
			return fail(err)
		}
		from = l.first
	}
	err := create(l.dir, l.name, func(f vfs.File) error { return l.copyFrom(from, f, begin) })
	if err == nil {
		err = l.dir.SyncDir(".")
	}
	if err != nil {
		return fail(err)
	}
	n, err := Open(l.dir, l.name)
	if err != nil {
		return fail(err)
	}
	if _, err = n.Read(func(Record) error { return nil }, nil); err == nil && n.at != l.at {
		err = ErrChanged
	}
	names, derr := Suspects(l.dir, l.name)
	for _, name := range names {
		if err := l.dir.Remove(name); !errors.Is(err, fs.ErrNotExist) { // whoever left it may have removed it
			derr = cmp.Or(derr, err)
		}
	}
	if err = cmp.Or(err, derr); err != nil {
		return fail(errors.Join(err, n.Close()))
	}
	n.durable, n.unproven, n.covered = recordEnd{n.at.Seq, n.end}, nil, true
	return n, nil
}

// create makes a file durable under a temporary name and renames it. The new name is not durable.
func create(dir vfs.FS, name string, fill func(vfs.File) error) error {
	tmp := vfs.TemporaryName(name)
	f, err := dir.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		_ = dir.Remove(tmp)
	}
	return err
}

// CopyTo writes the log, as far as it was read, to another folder, for another store: the begin record names that, and the
// other records are the same. A damaged begin record stays as it is. CopyTo syncs nothing.
func (l *Log) CopyTo(dir vfs.FS, store uuid.UUID) error {
	var begin []byte
	from := int64(0)
	if l.state != nil {
		b := l.begin
		b.Store = store
		var err error
		if begin, err = b.encode(l.from); err != nil {
			return err
		}
		from = l.first
	}
	f, err := dir.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	return errors.Join(l.copyFrom(from, f, begin), f.Close())
}

// copyFrom writes a begin record, what the log has from an offset on, and blank space.
func (l *Log) copyFrom(from int64, f vfs.File, begin []byte) error {
	_, err := f.Write(begin)
	if err == nil {
		_, err = io.Copy(f, io.NewSectionReader(l.f, from, l.end-from))
	}
	if err == nil {
		_, err = f.Write(blankSpace(space(int64(len(begin)) + l.end - from)))
	}
	return err
}
