package index

import (
	"errors"
	"fmt"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// Commit is what an append wrote. Nobody is told of it before Wait returns nil.
type Commit struct {
	// Written counts the items that the log has whole, from the first on; Err says why it has no others.
	Written int
	Err     error
	// At is the place after the last record.
	At journal.Position

	log     *openLog
	end     int64 // where that record ends in the log
	relaxed bool
}

// Wait returns nil when the records are durable. The error wraps [journal.ErrDurability]; a crash may then leave the
// records, or not. It needs no lock.
func (c *Commit) Wait() error {
	if c.relaxed {
		return nil
	}
	return c.Sync()
}

// Sync is Wait, but syncs also where the history is relaxed.
func (c *Commit) Sync() error {
	if c.log == nil {
		return nil
	}
	return c.log.SyncTo(c.end)
}

// Log returns the name of the log that has the records.
func (c *Commit) Log() string {
	if c.log == nil {
		return ""
	}
	return c.log.Name()
}

// Ready reports whether an append needs no Prepare, while no other process wrote since the last one.
func (ix *Index) Ready() (ready bool) {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	s := ix.state
	if s == nil || s.lenient || s.broken || len(s.logs) == 0 {
		return false
	}
	o := s.newest()
	return o.Next() == "" && o.Failed() == nil && !o.IsTorn() && o.Len() < ix.opts.Full
}

// Recover makes the records of a commit durable whose sync failed: in a copy of the log, since a sync that fails is never
// repeated. The caller holds the lock of the context. The error wraps [ErrGap] if the records are gone.
func (ix *Index) Recover(c *Commit) error {
	ix.advance.Lock()
	err := ix.prepare()
	ix.advance.Unlock()
	if err != nil {
		return err
	}
	t, err := ix.Resume(c.At)
	if err != nil {
		return err
	}
	t.Close()
	return ix.Barrier().Sync()
}

// Prepare reads what others committed, and makes the newest log ready for an append. The caller holds the lock of the
// context.
func (ix *Index) Prepare() error {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	return ix.prepare()
}

const tries = 8

func (ix *Index) prepare() (err error) {
	for range tries {
		if err = ix.refresh(); err != nil {
			return err
		}
		if ix.state.broken {
			return ix.beginAnew()
		}
		o := ix.state.newest()
		if o.Failed() == nil && !o.IsTorn() {
			err = ix.ready(o)
		} else {
			err = journal.ErrSuspect
		}
		switch {
		case err == nil && o.Next() == "" && o.Len() >= ix.opts.Full:
			return ix.rotate()
		case err == nil:
			return nil
		case errors.Is(err, journal.ErrSuspect) || errors.Is(err, journal.ErrDurability):
			err = ix.replace()
		case errors.Is(err, journal.ErrChanged):
			err = ix.reload()
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the newest log differs from what was written", ErrDamaged)
}

// ready makes a log ready for records, or for the log that continues it.
func (ix *Index) ready(o *openLog) error {
	if o.Next() != "" {
		return o.MakeDurable() // whoever ended it may have been killed before that
	}
	return o.Prepare(func(tail []byte) error {
		if ix.opts.Cut == nil {
			return nil
		}
		return ix.opts.Cut(o.Name(), tail)
	})
}

// replace puts a copy in the place of the newest log, whose blocks may not keep what is written to them, or whose begin
// record is torn.
func (ix *Index) replace() error {
	o := ix.state.newest()
	l, err := o.Replace(ix.dir.beginning(o.Number(), o.before))
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	return ix.reload()
}

// room is how many bytes a log has from its beginning on.
const room = 64 << 10

// rotate ends the newest log. The caller holds the lock of the context, and the log is prepared.
func (ix *Index) rotate() error {
	o := ix.state.newest()
	number, ok := journal.ParseName(o.Name())
	if !ok {
		return damaged("%q is not the name of a log", o.Name())
	}
	next := journal.NewName(number + 1)
	if err := journal.Preallocate(ix.dir.Logs, next, room); err != nil {
		return err
	}
	err := o.EndWith(next)
	if err != nil && o.Next() == "" {
		_ = ix.dir.Logs.Remove(next) // nothing names it
	}
	ix.mu.Lock()
	ix.state.at = o.At()
	ix.mu.Unlock()
	return err
}

// Rotate ends the newest log and begins another one, so that the first can be sealed, unless it has no record: then it makes
// the log durable, so that those before can be sealed. The caller holds the lock of the context and that for sealing.
func (ix *Index) Rotate() error {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	err := ix.current()
	if err == nil {
		err = ix.prepare()
	}
	if err != nil {
		return err
	}
	if o := ix.state.newest(); o.Next() == "" && o.Len() > 0 {
		if err := ix.rotate(); err != nil {
			return err
		}
	}
	if ix.state.newest().Next() != "" {
		if err := ix.begin(); err != nil {
			return err
		}
	}
	o := ix.state.newest()
	ix.rotated = o.From().Seq
	return o.MakeDurable()
}

// begin begins the log that continues the newest one.
func (ix *Index) begin() error { return ix.beginLog(ix.state.newest().Next()) }

// beginAnew begins a log behind records that are damaged or missing: it continues the last one that is whole. If the newest log
// is missing, one record at least is lost, and the place says so until a repair: readers look for files of lost messages.
//
// Crash order: the log is durable before it has a record, so that none counts for lost behind a log that is not there.
func (ix *Index) beginAnew() error {
	names, err := listLogs(ix.dir.Logs)
	if err != nil {
		return err
	}
	number := uint64(0)
	if len(names) > 0 {
		number, _ = journal.ParseName(names[len(names)-1])
	}
	next := journal.NewName(number + 1)
	if err := journal.Preallocate(ix.dir.Logs, next, room); err != nil {
		return err
	}
	if ix.state.headless {
		ix.mu.Lock()
		ix.state.at = journal.Position{Seq: ix.state.at.Seq + 1}
		ix.mu.Unlock()
	}
	if err := ix.beginLog(next); err != nil {
		return err
	}
	ix.state.broken, ix.state.headless = false, false
	return ix.ready(ix.state.newest())
}

func (ix *Index) beginLog(name string) error {
	all, err := ix.state.save()
	if err != nil {
		return err
	}
	b, err := all.encode()
	if err != nil {
		return err
	}
	number, _ := journal.ParseName(name)
	l, err := journal.BeginAt(ix.dir.Logs, name, ix.dir.beginning(number, b), ix.state.at)
	if err != nil {
		return err
	}
	ix.mu.Lock()
	ix.state.logs = append(ix.state.logs, newOpenLog(l))
	ix.mu.Unlock()
	return nil
}

// Append writes records for the items after the last record, in one write. The caller holds the lock of the context, and
// has called Prepare. Other processes can see the records from now on. With group they are one commit: all of them
// count, or none. Else a crash may leave the first ones.
func (ix *Index) Append(items []journal.Item, group bool) *Commit {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	c := &Commit{relaxed: ix.opts.Relaxed}
	if ix.state.newest().Next() != "" {
		if c.Err = ix.begin(); c.Err != nil {
			return c
		}
	}
	o := ix.state.newest()
	written, end, err := o.Write(items, group, !ix.opts.Relaxed)
	c.log, c.end, c.Err, c.Written = o, end, err, len(written)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, rec := range written {
		r := record{Record: rec, log: o}
		err := r.parse()
		if err == nil {
			err = ix.state.take(&r)
		}
		if err != nil {
			c.Written, c.Err = 0, errors.Join(c.Err, err)
			return c
		}
	}
	c.At = ix.state.at
	return c
}

// Barrier returns a commit without records, whose Sync covers all known records. The caller holds the lock of the context,
// and has called Prepare.
func (ix *Index) Barrier() *Commit {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	o := ix.state.newest()
	c := &Commit{log: o, At: ix.state.at, relaxed: ix.opts.Relaxed}
	if o.IsDurable() {
		c.log = nil
		return c
	}
	c.end = o.End()
	return c
}

// Begin makes the first log of a context in its new folder, with the metadata. It syncs the log, and not its name.
func Begin(dir Folder, m *ctxfolder.Metadata) error {
	raw, err := ctxfolder.CommittableMetadata(m)
	if err != nil {
		return err
	}
	state, err := saved{Lines: []Counts{}}.encode()
	if err != nil {
		return err
	}
	return journal.Start(dir.Logs, journal.NewName(1), dir.beginning(1, state), []journal.Item{{Kind: journal.Metadata, Body: raw}})
}

// beginning returns what a log with a number begins with.
func (dir Folder) beginning(number uint64, state []byte) journal.Beginning {
	return journal.Beginning{
		Context: dir.Context, Store: dir.Store, Number: number, State: state, CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}
}

// MetadataItem returns the record that commits m, the next revision of the metadata. The caller holds the lock of the
// context, and has called Prepare.
func (ix *Index) MetadataItem(m *ctxfolder.Metadata) (journal.Item, error) {
	ix.advance.Lock()
	defer ix.advance.Unlock()
	return ix.state.metadata.item(m)
}
