package ctxdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Types of the metadata, as metadata.json has them.
type (
	// Metadata is everything about a context but its messages.
	Metadata = ctxfolder.Metadata
	// Object is a JSON object that keeps the order and spelling of its members.
	Object = ctxfolder.Object
)

// MainBranch is the branch a new context has.
const MainBranch = "main"

// Context is an open context. It can be used by several goroutines. What it shows is as of the last
// operation that wrote through it, or the last [Context.Refresh].
type Context struct {
	store *Store
	dir   *ctxfolder.Dir
	log   *index.Log
	load  *loader.Loader
	// prepared is the tenure of the lock in which the handle was brought up to date; for who holds the lock
	prepared uint64
	doubtful bool // a write of metadata.json failed: what is there may not be durable; for who holds the lock

	closing sync.Once
	under   sync.WaitGroup // operations that are under way

	mu       sync.Mutex // guards metadata, folding and closed
	closed   bool       // no operation begins any more
	metadata *Metadata
	stamp    ctxfolder.Stamp
	broken   error         // why metadata.json could not be used; metadata is then the journals' copy
	wrote    bool          // something was appended through this handle
	imported bool          // much was, and nobody goes on
	folding  chan struct{} // closed when the fold that is going on ends
	putting  putting
	foldErr  error

	legacy  LegacyFormat // of a view; empty otherwise
	release func()       // lets go of what a view needs
}

// Create makes a context. Of m, the zero value of every field is fine: a new id (UUIDv7), a branch "main", which gets
// the system prompt and further members of m.Branches[0], if there is one.
// It fails with [ErrExist] when the id is taken, by a legacy context too. A creation that fails leaves nothing behind but what the next
// Open sweeps, and can be tried again.
func (s *Store) Create(ctx context.Context, m Metadata) (*Context, error) {
	created := m.Clone()
	if created.ID == uuid.Nil {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, public(Error{Op: "create"}, err)
		}
		created.ID = id
	} else if s.Legacy(created.ID) != "" {
		return nil, public(Error{Op: "create", Context: created.ID}, fmt.Errorf("%w: as a legacy context", ErrExist))
	}
	if err := s.create(ctx, created); err != nil {
		return nil, public(Error{Op: "create", Context: created.ID}, err)
	}
	return s.Context(ctx, created.ID)
}

func (s *Store) create(ctx context.Context, m *Metadata) error {
	if s.readOnly {
		return ErrReadOnly
	}
	now := time.Now().UTC()
	var first ctxfolder.Branch
	if len(m.Branches) > 0 {
		first = m.Branches[0]
	}
	m.Lines, m.Branches, m.Removed, m.Renaming = nil, nil, nil, nil
	m.CreatedAt, m.UpdatedAt, m.Revision = now, now, 1
	m.ActiveBranch = MainBranch
	line, err := uuid.NewV7()
	if err != nil {
		return err
	}
	main, err := branch.New(m, MainBranch, line)
	if err != nil {
		return err
	}
	blobs := blobsInUse{s: s}
	defer blobs.release()
	if first.SystemPrompt, err = s.externalisePrompt(first.SystemPrompt, func() error { return blobs.hold(ctx) }); err != nil {
		return err
	}
	main.SystemPrompt, main.Extra = first.SystemPrompt, first.Extra
	files, err := index.BeginFiles(m, s.id, now)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.lockTimeout)
	defer cancel()
	return ctxfolder.Create(limited, s.fs, m, ctxfolder.Begin{Files: files})
}

// Context opens a context: it reads metadata.json and nothing else (requirement "load without messages").
// It fails with [ErrNotExist]. Where metadata.json is damaged, the journals' copy serves, and
// [Context.Problem] says so.
//
// A legacy context that lies in the store under that id is migrated first, as by [Store.Migrate]; without [AutoMigrate], or in a store that
// is open for reading, it is shown as it is: see [Context.Legacy].
func (s *Store) Context(ctx context.Context, id uuid.UUID) (*Context, error) {
	c, err := s.openAny(ctx, id)
	return c, public(Error{Op: "open", Context: id}, err)
}

func (s *Store) openAny(ctx context.Context, id uuid.UUID) (*Context, error) {
	c, err := s.open(ctx, id)
	if err != nil && ctx.Err() == nil {
		c, err = s.openLegacy(ctx, id, err)
	}
	return c, err
}

func (s *Store) open(ctx context.Context, id uuid.UUID) (*Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := s.openIn(s.fs, id)
	if errors.Is(err, ctxfolder.ErrNotExist) {
		if err := s.settle(ctx, id); err != nil {
			return nil, err
		}
		c, err = s.openIn(s.fs, id)
	}
	return c, err
}

// settle waits for who is giving a context its place, which is empty in between, and does what one who was stopped left undone.
func (s *Store) settle(ctx context.Context, id uuid.UUID) error {
	if !ctxfolder.Ready(s.fs, id) {
		return nil
	}
	lock := s.fs.Lock(ctxfolder.Locks + "/" + id.String())
	defer lock.Close()
	if err := s.acquire(ctx, lock); err != nil || s.readOnly {
		return err
	}
	return ctxfolder.Settle(s.fs, id)
}

// openIn opens a context that lies in a folder.
func (s *Store) openIn(in vfs.FS, id uuid.UUID) (*Context, error) {
	dir, err := ctxfolder.Open(in, s.id, id)
	if err != nil {
		return nil, err
	}
	c := &Context{store: s, dir: dir, log: s.openLog(dir)}
	c.load = loader.New(dir, c.log, s.pool, s.blobs, s.opts.memory)
	if err := c.readMetadata(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (s *Store) openLog(dir *ctxfolder.Dir) *index.Log {
	return index.Open(dir, index.Options{
		FoldBytes: s.opts.foldBytes, Relaxed: s.opts.relaxed, Retain: s.opts.retain, Payloads: payloadStore{s}, Wait: s.opts.lockTimeout,
	})
}

// Close waits for running operations, folds what was appended if that is worth it to whoever opens the context next, and releases the context. Where much
// was written since journals were settled, it settles them too, so that the disk holds the messages about once. Later calls fail with [ErrClosed], but
// for what the context has in memory, as its metadata. An iteration over messages ends with ErrClosed where it would read on, so its body may close the
// context; a function that was given to an operation, to [Context.Update] for instance, must not: each would wait for the other. Payloads of
// messages that were read before can still be read, if they are in blobs. Closing a context again does nothing.
func (c *Context) Close() (err error) {
	c.closing.Do(func() { err = c.close() })
	return err
}

func (c *Context) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.under.Wait()
	c.mu.Lock()
	folding, wrote := c.folding, c.wrote
	c.mu.Unlock()
	if folding != nil {
		<-folding
	}
	c.putting.run(c)
	if wrote && !c.store.opts.noFold {
		// A fold that fails costs nothing but a longer journal.
		switch {
		case c.imported || c.log.ShedDue(shedAtClose):
			_ = c.shed()
		case c.log.FoldDue(foldAtClose):
			_ = c.fold()
		}
	}
	c.load.Close()
	err := errors.Join(c.log.Close(), c.dir.Close())
	if c.release != nil {
		c.release()
	}
	return err
}

// use runs an operation, unless the context was closed. Every method that others call runs in it what needs the context's files, but for payloads of
// messages, see [loader.Loader.Close]; Close itself sees to what goes on in the background. One operation in another may be refused in the middle of that.
func (c *Context) use(f func() error) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.under.Add(1)
	c.mu.Unlock()
	defer c.under.Done()
	return f()
}

// using is use for what has a result.
func using[T any](c *Context, f func() (T, error)) (result T, err error) {
	err = c.use(func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

// readMetadata reads metadata.json if it is not the version known. Unusable, it is replaced by the journals'
// copy, in memory: repairing it is not a reader's business.
func (c *Context) readMetadata() error {
	stamp := c.dir.MetadataStamp()
	c.mu.Lock()
	same := c.metadata != nil && c.broken == nil && stamp.Same(c.stamp)
	c.mu.Unlock()
	if same {
		return nil
	}
	m, stamp, err := c.dir.ReadMetadata()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrMetadata) {
		broken := err
		raw, cerr := c.log.MetadataCopy()
		if cerr != nil || raw == nil {
			return err
		}
		if m, cerr = ctxfolder.ParseMetadata(raw); cerr != nil {
			return err
		}
		err = broken
	} else if err != nil {
		return err
	}
	c.dir.SetRenaming(m.Renaming)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metadata, c.stamp, c.broken = m, stamp, err
	return nil
}

func (c *Context) current() *Metadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metadata
}

// ID is the context's id.
func (c *Context) ID() uuid.UUID { return c.dir.ID }

// Metadata returns a copy of the metadata.
func (c *Context) Metadata() *Metadata { return c.current().Clone() }

// Problem is why the context is not in order though it could be opened, nil when nothing is known.
func (c *Context) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Refresh looks for what other processes committed, and makes later reads look whether message files were
// edited by hand. Until then a second access to a loaded message does no I/O.
func (c *Context) Refresh(ctx context.Context) error {
	return public(Error{Op: "refresh", Context: c.dir.ID}, c.use(func() error { return c.refresh(ctx) }))
}

func (c *Context) refresh(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = c.dir.Check()
	}
	if err == nil {
		err = c.readMetadata()
	}
	if err == nil {
		err = c.log.Refresh()
	}
	c.load.Refresh()
	return public(Error{Op: "refresh", Context: c.dir.ID}, err)
}

// write runs f with the lock held, the metadata current, and the log ready for an append.
func (c *Context) write(ctx context.Context, f func(m *Metadata) error) error {
	if c.store.readOnly {
		return ErrReadOnly
	}
	deadline := time.Now().Add(c.store.opts.lockTimeout)
	for {
		err := c.writeOnce(ctx, f)
		if !errors.Is(err, index.ErrBusy) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Context) writeOnce(ctx context.Context, f func(m *Metadata) error) error {
	if err := c.store.acquire(ctx, c.dir.Lock); err != nil {
		return err
	}
	defer c.dir.Lock.Release()
	// While the lock was not free, no other process can have written since this handle looked.
	tenure := c.dir.Lock.Tenure()
	if c.prepared != tenure || !c.log.Ready() || c.current().Renaming != nil {
		c.prepared = 0
		if err := c.prepare(); err != nil {
			return err
		}
		c.prepared = tenure
	}
	return f(c.current())
}

// prepare brings the handle up to date for a write. The caller holds the lock.
func (c *Context) prepare() error {
	if err := c.dir.Check(); err != nil {
		return err
	}
	if err := c.readMetadata(); err != nil {
		return err
	}
	if err := c.Problem(); err != nil {
		return fmt.Errorf("%w; repair mends it", err)
	}
	if err := c.log.Prepare(); err != nil {
		return err
	}
	if c.doubtful {
		// It is there, maybe, and a crash may take it: what builds on it must not be acknowledged before it is certain. The failed sync is not
		// tried again: the same is written once more, to another file.
		if _, err := c.dir.WriteMetadata(c.current()); err != nil {
			return err
		}
		c.doubtful = false
		if err := c.readMetadata(); err != nil {
			return err
		}
	}
	return c.finishRenaming()
}

// finishRenaming does what is left of a branch folder's rename. The caller holds the lock.
func (c *Context) finishRenaming() error {
	m := c.current()
	if m.Renaming == nil {
		return nil
	}
	if err := c.dir.FinishRenaming(*m.Renaming); err != nil {
		return err
	}
	done := m.Clone()
	done.Renaming = nil
	return c.writeMetadata(done)
}

// writeMetadata commits a change of the metadata. The caller holds the lock.
func (c *Context) writeMetadata(m *Metadata) error {
	m.Revision++
	stamp, err := c.dir.WriteMetadata(m)
	if err != nil {
		c.doubtful, c.prepared = true, 0
		return err
	}
	c.dir.SetRenaming(m.Renaming)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metadata, c.stamp = m, stamp
	return nil
}

// change changes the metadata. With positions, the change relies on messages being there: they are made
// durable first, since other processes' may not be yet.
//
// Crash order: the journal's copy comes first and counts only once metadata.json bears its revision, which the
// replacement of that file decides.
func (c *Context) change(ctx context.Context, positions bool, f func(m *Metadata) error) error {
	return c.use(func() error { return c.changeNow(ctx, positions, f) })
}

func (c *Context) changeNow(ctx context.Context, positions bool, f func(m *Metadata) error) error {
	return c.write(ctx, func(current *Metadata) error {
		m := current.Clone()
		if err := f(m); err != nil {
			return err
		}
		m.UpdatedAt = time.Now().UTC()
		next := m.Clone()
		next.Revision++
		positions = positions && !c.log.Durable()
		commit := c.log.Append([]index.Item{{Kind: index.KindMetadata, Body: ctxfolder.RawMetadata(next)}})
		if commit.Err != nil {
			return commit.Err
		}
		if positions {
			if err := commit.Sync(); err != nil {
				return err
			}
		}
		return c.writeMetadata(m)
	})
}

// Update changes title, config, state, parent, unknown members, and the system prompts and further members of
// branches (requirement "save metadata alone"). What f does to ids, lines, branch names, revision and times is undone: there are
// methods for that.
func (c *Context) Update(ctx context.Context, f func(m *Metadata) error) error {
	blobs := blobsInUse{s: c.store}
	defer blobs.release()
	err := c.change(ctx, false, func(m *Metadata) error {
		fixed := m.Clone()
		if err := f(m); err != nil {
			return err
		}
		edited := m.Branches
		for i := range edited {
			prompt, err := c.store.externalisePrompt(edited[i].SystemPrompt, func() error { return blobs.hold(ctx) })
			if err != nil {
				return err
			}
			edited[i].SystemPrompt = prompt
		}
		m.ID, m.Lines, m.Removed, m.Renaming = fixed.ID, fixed.Lines, fixed.Removed, fixed.Renaming
		m.ActiveBranch, m.Revision, m.CreatedAt, m.Branches = fixed.ActiveBranch, fixed.Revision, fixed.CreatedAt, fixed.Branches
		for i := range m.Branches {
			if j := slices.IndexFunc(edited, func(b ctxfolder.Branch) bool { return b.Name == m.Branches[i].Name }); j >= 0 {
				m.Branches[i].SystemPrompt, m.Branches[i].Extra = edited[j].SystemPrompt, edited[j].Extra
			}
		}
		if m.State != nil && !json.Valid(m.State) {
			return fmt.Errorf("%w: state is no JSON", ErrInvalid)
		}
		return nil
	})
	return public(Error{Op: "update", Context: c.dir.ID}, err)
}

// Fold brings what the journals hold into message files and index now, durably, so that they are no longer needed.
// It happens by itself when they have grown enough. While another process folds the context, it does nothing.
func (c *Context) Fold(ctx context.Context) error {
	if c.store.readOnly {
		return public(Error{Op: "fold", Context: c.dir.ID}, ErrReadOnly)
	}
	return public(Error{Op: "fold", Context: c.dir.ID}, c.use(func() error { return c.log.Fold(ctx, true) }))
}

// foldAtClose is the part of the size at which a journal is folded at which Close folds it.
const foldAtClose = 16

// shedAtClose times the size at which a journal is folded is what journals that are not settled may have when Close leaves them to followers
// that begin again.
const shedAtClose = 4

// foldIfDue starts a fold in the background, unless one is going on. One that failed, on a full disk say,
// costs nothing but a longer journal: it is tried again at the next append.
func (c *Context) foldIfDue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote = true
	if c.store.opts.noFold || !c.log.FoldDue(1) {
		return
	}
	if c.folding != nil {
		select {
		case <-c.folding:
		default:
			return
		}
	}
	done := make(chan struct{})
	c.folding = done
	go func() {
		defer close(done)
		err := c.fold()
		if err == nil && c.log.FoldDue(1) { // a burst went on meanwhile
			err = c.fold()
		}
		c.mu.Lock()
		c.foldErr = err
		c.mu.Unlock()
	}()
}

// shed settles the journals and lets go of them.
func (c *Context) shed() error {
	limited, cancel := context.WithTimeout(context.Background(), c.store.opts.lockTimeout)
	defer cancel()
	return c.log.Shed(limited)
}

func (c *Context) fold() error {
	limited, cancel := context.WithTimeout(context.Background(), c.store.opts.lockTimeout)
	defer cancel()
	return c.log.Fold(limited, false)
}
