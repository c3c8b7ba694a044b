package history

import (
	"encoding/json"
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
	At journal.Spot

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

// Prepare reads what others committed, and makes the newest log ready for an append. The caller holds the lock of the
// context.
func (h *History) Prepare() error {
	h.advance.Lock()
	defer h.advance.Unlock()
	return h.prepare()
}

const tries = 8

func (h *History) prepare() (err error) {
	for range tries {
		if err = h.refresh(); err != nil {
			return err
		}
		if h.state.broken {
			return h.beginAnew()
		}
		o := h.state.newest()
		if err = o.Failed(); err == nil {
			err = h.ready(o)
		} else {
			err = journal.ErrDoubted
		}
		switch {
		case err == nil && o.Next() == "" && o.Len() >= h.opts.Full:
			return h.rotate()
		case err == nil:
			return nil
		case errors.Is(err, journal.ErrDoubted) || errors.Is(err, journal.ErrDurability):
			err = h.replace()
		case errors.Is(err, journal.ErrChanged):
			err = h.reload()
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the newest log is not what was written", ErrDamaged)
}

// ready makes a log ready for records, or for the log that continues it.
func (h *History) ready(o *openLog) error {
	if o.Next() != "" {
		return o.MakeDurable() // whoever ended it may have been killed before that
	}
	return o.Prepare(func(tail []byte) error {
		if h.opts.Cut == nil {
			return nil
		}
		return h.opts.Cut(o.Name(), tail)
	})
}

// replace puts a copy in the place of the newest log, whose blocks may not keep what is written to them.
func (h *History) replace() error {
	o := h.state.newest()
	l, err := o.Replace()
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	return h.reload()
}

// room is how many bytes a log has from its beginning on.
const room = 64 << 10

// rotate ends the newest log. The caller holds the lock of the context, and the log is prepared.
func (h *History) rotate() error {
	o := h.state.newest()
	number, ok := journal.ParseName(o.Name())
	if !ok {
		return damaged("%q is no log", o.Name())
	}
	next := journal.NewName(number + 1)
	if err := journal.Preallocate(h.dir.Logs, next, room); err != nil {
		return err
	}
	err := o.EndWith(next)
	h.mu.Lock()
	h.state.at = o.At()
	h.mu.Unlock()
	return err
}

// Rotate ends the newest log and begins another one, so that the first can be sealed, unless it has no record. The caller
// holds the lock of the context, and has called Prepare.
func (h *History) Rotate() error {
	h.advance.Lock()
	defer h.advance.Unlock()
	o := h.state.newest()
	if o.Next() == "" {
		if o.Len() == 0 {
			return nil
		}
		if err := h.rotate(); err != nil {
			return err
		}
	}
	if err := h.begin(); err != nil {
		return err
	}
	return h.state.newest().MakeDurable()
}

// begin begins the log that continues the newest one.
func (h *History) begin() error { return h.beginLog(h.state.newest().Next()) }

// beginAnew begins a log behind records that are damaged or missing: it continues the last one that is whole.
//
// Crash order: the log is durable before it has a record, so that none counts for lost behind a log that is not there.
func (h *History) beginAnew() error {
	names, err := listLogs(h.dir.Logs)
	if err != nil {
		return err
	}
	number := uint64(0)
	if len(names) > 0 {
		number, _ = journal.ParseName(names[len(names)-1])
	}
	next := journal.NewName(number + 1)
	if err := journal.Preallocate(h.dir.Logs, next, room); err != nil {
		return err
	}
	if err := h.beginLog(next); err != nil {
		return err
	}
	h.state.broken = false
	return h.ready(h.state.newest())
}

func (h *History) beginLog(name string) error {
	all, err := h.state.save()
	if err != nil {
		return err
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	number, _ := journal.ParseName(name)
	l, err := journal.BeginAt(h.dir.Logs, name, journal.Beginning{
		Context: h.dir.Context, Store: h.dir.Store, Number: number, State: b, CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}, h.state.at)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.state.logs = append(h.state.logs, newOpenLog(l))
	h.mu.Unlock()
	return nil
}

// Append writes records for the items after the last record, in one write. The caller holds the lock of the context, and
// has called Prepare. Other processes can see the records from now on. With group they are one commit: all of them
// count, or none. Else a crash may leave the first ones.
func (h *History) Append(items []journal.Item, group bool) *Commit {
	h.advance.Lock()
	defer h.advance.Unlock()
	c := &Commit{relaxed: h.opts.Relaxed}
	if h.state.newest().Next() != "" {
		if c.Err = h.begin(); c.Err != nil {
			return c
		}
	}
	o := h.state.newest()
	written, end, err := o.Write(items, group, !h.opts.Relaxed)
	c.log, c.end, c.Err, c.Written = o, end, err, len(written)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, rec := range written {
		r := record{Record: rec, log: o}
		err := r.parse()
		if err == nil {
			err = h.state.take(&r)
		}
		if err != nil {
			c.Written, c.Err = 0, errors.Join(c.Err, err)
			return c
		}
	}
	c.At = h.state.at
	return c
}

// Barrier returns a commit without records, whose Sync covers all known records. The caller holds the lock of the context,
// and has called Prepare.
func (h *History) Barrier() *Commit {
	h.advance.Lock()
	defer h.advance.Unlock()
	o := h.state.newest()
	c := &Commit{log: o, At: h.state.at, relaxed: h.opts.Relaxed}
	if o.IsDurable() {
		c.log = nil
		return c
	}
	c.end = o.End()
	return c
}

// Create begins the history of a context with the metadata, and maybe messages, of its first commit.
func Create(dir Folder, o Options, items []journal.Item) (h *History, c *Commit, err error) {
	h = Open(dir, o)
	s := &state{context: dir.Context, segments: newSegments()}
	b, err := json.Marshal(saved{Lines: []Counts{}})
	if err == nil {
		err = s.restore(b, journal.Spot{})
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := journal.BeginAt(dir.Logs, journal.NewName(1), journal.Beginning{
		Context: dir.Context, Store: dir.Store, Number: 1, State: b, CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}, journal.Spot{})
	if err != nil {
		return nil, nil, err
	}
	s.logs = append(s.logs, newOpenLog(l))
	h.set(s)
	c = h.Append(items, true)
	return h, c, c.Err
}

// MetadataItem returns the record that commits m, the next revision of the metadata. The caller holds the lock of the
// context, and has called Prepare.
func (h *History) MetadataItem(m *ctxfolder.Metadata) (journal.Item, error) {
	h.advance.Lock()
	defer h.advance.Unlock()
	return h.state.metadata.item(m)
}
