package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// Types of the metadata, as in metadata.json.
type (
	// Metadata is everything about a context but its messages.
	Metadata = ctxfolder.Metadata
	// Object is a JSON object that keeps the order and form of its members.
	Object = ctxfolder.Object
)

// MainBranch is the branch of a new context.
const MainBranch = "main"

// Context is an open context. Several goroutines may use it. It shows the state as of the last operation that wrote
// through it, or of the last [Context.Refresh].
type Context struct {
	Store  *Store
	Dir    *ctxfolder.Dir
	Index  *index.Index
	Loader *loader.Loader
	// prepared is the tenure of the lock in which the handle was brought up to date; only for the holder of the lock.
	prepared uint64
	named    bool // the name of the folder is durable; likewise

	closing sync.Once
	under   sync.WaitGroup // running operations

	mu           sync.Mutex // guards metadata, sealing and closed
	closed       bool       // no operation may begin
	metadata     *Metadata
	journaled    *Metadata            // by the logs; nil before the context has the current format
	projection   ctxfolder.Projection // the state of metadata.json
	stamp        ctxfolder.Stamp
	broken       error         // why metadata.json is unusable
	wrote        bool          // something was appended through this handle
	sealing      chan struct{} // closed when the running seal ends
	blobQueue    blobQueue
	messageFiles messageFiles

	legacy  LegacyFormat // of a view; empty otherwise
	release func()       // releases the temporary store of a view
}

// Create makes a context. Every field of m may be zero: the context then has a new id (UUIDv7) and a branch "main",
// which takes the system prompt and further members of m.Branches[0], if there is one. With an external id, the id is
// derived from it and from the kind. Create fails with [ErrExist] when a context, or a legacy context, has the id. A
// creation that fails leaves nothing that the next Open does not sweep, and can be retried.
func (s *Store) Create(ctx context.Context, m Metadata) (*Context, error) {
	created := m.Clone()
	if err := s.ChooseID(created); err != nil {
		return nil, Wrap(Error{Op: "create", Context: created.ID}, err)
	}
	if err := s.create(ctx, created); err != nil {
		return nil, Wrap(Error{Op: "create", Context: created.ID}, err)
	}
	c, err := s.Context(ctx, created.ID)
	if err == nil {
		c.named = true // durably, by create
	}
	return c, err
}

// ChooseID gives the metadata of a new context its id, unless it has one. It fails with [ErrInvalid] where an external
// id requires another one.
func (s *Store) ChooseID(m *Metadata) (err error) {
	if err := m.TakeExternalID(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if m.ID == uuid.Nil {
		m.ID, err = uuid.NewV7()
	} else if s.Legacy(m.ID) != "" {
		err = fmt.Errorf("%w: as a legacy context", ErrExist)
	}
	return err
}

func (s *Store) create(ctx context.Context, m *Metadata) error {
	if s.ReadOnly {
		return ErrReadOnly
	}
	blobs := BlobHold{Store: s}
	defer blobs.Release()
	if err := s.Begin(m, func() error { return blobs.Hold(ctx) }); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.Options.LockTimeout)
	defer cancel()
	return ctxfolder.Create(limited, s.FS, m, func(folder vfs.FS) error { return index.Begin(index.FolderOf(s.id, m.ID, folder), m) })
}

// Begin makes m the metadata of a new context with one branch, "main", on an empty line. It moves the system prompt to
// a blob, and calls hold before.
func (s *Store) Begin(m *Metadata, hold func() error) error {
	now := time.Now().UTC()
	var first ctxfolder.Branch
	if len(m.Branches) > 0 {
		first = m.Branches[0]
	}
	m.Lines, m.Branches, m.Removed = nil, nil, nil
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
	main.SystemPrompt, err = s.ExternalisePrompt(first.SystemPrompt, hold)
	main.Extra = first.Extra
	return err
}

// Context opens a context. It reads metadata.json and the logs that are not sealed. It fails with [ErrNotExist].
// If metadata.json is damaged, the committed metadata serves, and [Context.Problem] says so.
//
// A legacy context in the store under that id is opened as [OpenLegacy] says.
func (s *Store) Context(ctx context.Context, id uuid.UUID) (*Context, error) {
	c, err := s.openAny(ctx, id)
	return c, Wrap(Error{Op: "open", Context: id}, err)
}

// openAny is Context with the errors of the packages below.
func (s *Store) openAny(ctx context.Context, id uuid.UUID) (*Context, error) {
	c, err := s.Open(ctx, id)
	if err == nil || ctx.Err() != nil {
		return c, err
	}
	if name, ok := s.LegacyAt(id); ok && s.Options.openLegacy != nil {
		return s.Options.openLegacy(ctx, s, id, name)
	}
	if c, oerr := s.Open(ctx, id); oerr == nil { // another process migrated it meanwhile
		return c, nil
	}
	return nil, err
}

// Open opens a context as it is in the store, never a legacy one. Its errors are those of the packages below.
func (s *Store) Open(ctx context.Context, id uuid.UUID) (*Context, error) {
	return s.OpenThrough(ctx, s.FS, id)
}

// OpenThrough is Open through fsys, which is the folder of the store.
func (s *Store) OpenThrough(ctx context.Context, fsys vfs.FS, id uuid.UUID) (*Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := s.OpenIn(fsys, id)
	if errors.Is(err, ctxfolder.ErrNotExist) {
		if err := s.Settle(ctx, id); err != nil {
			return nil, err
		}
		c, err = s.OpenIn(fsys, id)
	}
	return c, err
}

// Settle waits for a process that is moving a context to its place, empty in between, and finishes an interrupted move.
func (s *Store) Settle(ctx context.Context, id uuid.UUID) error {
	if !ctxfolder.Ready(s.FS, id) {
		return nil
	}
	lock := s.FS.Lock(ctxfolder.Locks + "/" + id.String())
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil || s.ReadOnly {
		return err
	}
	return ctxfolder.Settle(s.FS, id)
}

// OpenIn opens a context in the folder in, such as a trash item, or staging/ while a backup or a migration makes it.
func (s *Store) OpenIn(in vfs.FS, id uuid.UUID) (*Context, error) {
	dir, err := ctxfolder.Open(in, s.id, id)
	if err != nil {
		return nil, err
	}
	c := &Context{Store: s, Dir: dir}
	c.Index = s.IndexOf(dir)
	c.Loader = loader.New(dir, c.Index, s.Pool, s.Blobs, s.Options.Memory)
	if err := c.ReadMetadata(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// IndexOf returns the index of a context's folder. The caller closes it before the folder.
func (s *Store) IndexOf(dir *ctxfolder.Dir) *index.Index {
	return index.Open(index.FolderOf(s.id, dir.ID, dir.FS), index.Options{
		Relaxed: s.Options.relaxed, Full: s.Options.fullLog(), Payloads: s.keepPayloads,
		Cut: func(log string, tail []byte) error { return keepTail(dir, log, tail) },
	})
}

// keepTail puts the torn end of a log into the trash before it goes.
func keepTail(dir *ctxfolder.Dir, log string, tail []byte) error {
	if len(bytes.Trim(tail, "\x00")) == 0 {
		return nil
	}
	return ctxfolder.TrashBytes(dir, ctxfolder.TrashTail, log, tail)
}

// Close waits for running operations, seals what was appended if that is much, and releases the context. Later calls fail
// with [ErrClosed], except for what is in memory, such as the metadata. An iteration ends with ErrClosed at its next read,
// so its body may close the context. A function passed to [Context.Update] or another operation must not: each would wait
// for the other. Payloads of messages that were read before stay readable if they are in blobs. Closing again does nothing.
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
	wrote := c.wrote
	c.mu.Unlock()
	c.AwaitSeal()
	missing := c.awaitFiles(writers)
	c.PutBlobs()
	switch {
	case wrote && c.sealDue(sealInPause):
		_ = c.seal(false) // one that fails only costs a longer log
	case wrote:
		c.summariseNow()
	}
	if missing != nil {
		limited, cancel := context.WithTimeout(context.Background(), c.Store.Options.LockTimeout)
		defer cancel()
		if missing = c.flush(limited); errors.Is(missing, ErrGone) {
			missing = nil // a removed context needs no files
		}
	}
	_ = c.flushProjection(context.Background()) // the next writer replaces a stale file
	c.Loader.Close()
	c.Index.Close()
	err := errors.Join(missing, c.Dir.Close())
	if c.release != nil {
		c.release()
	}
	return err
}

// use runs an operation, unless the context was closed. Every exported method that needs the context's files runs in
// it, except payloads of messages: see [loader.Loader.Close]. Operations do not nest: Close may refuse the inner one.
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

// Use runs an operation with a result, unless the context was closed. The packages above run every operation on an
// open context in it.
func Use[T any](c *Context, f func() (T, error)) (result T, err error) {
	err = c.use(func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

// ReadMetadata reads the metadata that counts now, according to the log and metadata.json. An unusable metadata.json is
// noted: see [Context.Problem].
func (c *Context) ReadMetadata() error {
	if stamp, known := c.knownMetadata(); known && c.Dir.MetadataStamp().Same(stamp) {
		return nil
	}
	for { // until nothing in this process reads on or commits between the look and its result
		m, committed, is, stamp, err := c.effectiveMetadata()
		if m == nil {
			return err
		}
		c.mu.Lock()
		if now, nerr := c.Index.Metadata(); nerr != nil || now != committed {
			c.mu.Unlock()
			continue
		}
		c.metadata, c.journaled, c.projection, c.stamp, c.broken = m, committed, is, stamp, err
		var access *fs.PathError
		torn := !errors.As(c.broken, &access) || errors.Is(c.broken, fs.ErrNotExist)
		if torn && committed != nil {
			c.broken = nil
		}
		c.mu.Unlock()
		return nil
	}
}

// effectiveMetadata returns the metadata that counts: what was committed, with what a person changed in metadata.json.
// With [ctxfolder.ProjectionUnusable], err is about metadata.json; m is nil if nothing replaces it.
func (c *Context) effectiveMetadata() (m, committed *Metadata, is ctxfolder.Projection, stamp ctxfolder.Stamp, err error) {
	for try := 0; ; try++ {
		if committed, err = c.Index.Metadata(); err != nil {
			return nil, nil, ctxfolder.ProjectionUnusable, stamp, err
		}
		m, is, stamp, err = c.Dir.EffectiveMetadata(committed)
		if is != ctxfolder.ProjectionNewer || committed == nil || try > 0 {
			return m, committed, is, stamp, err
		}
		if err := c.Index.Refresh(); err != nil { // another process committed meanwhile
			return nil, nil, ctxfolder.ProjectionUnusable, stamp, err
		}
	}
}

// knownMetadata returns the version of metadata.json from which the handle has its metadata, if the log's metadata is
// still the same.
func (c *Context) knownMetadata() (stamp ctxfolder.Stamp, known bool) {
	committed, err := c.Index.Metadata()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamp, err == nil && c.metadata != nil && c.broken == nil && committed == c.journaled
}

// Current returns the metadata that the handle has now. The caller must not change it.
func (c *Context) Current() *Metadata {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metadata
}

// ID returns the context's id.
func (c *Context) ID() uuid.UUID { return c.Dir.ID }

// Metadata returns a copy of the metadata.
func (c *Context) Metadata() *Metadata { return c.Current().Clone() }

// Problem returns why an open context is not in order, or nil if nothing is known. A damaged or missing metadata.json
// is not a problem if a log committed the metadata: a crash can tear the file, and the next write replaces it. One
// that cannot be read may have edits.
func (c *Context) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Refresh reads what other processes committed, and makes later reads check whether message files were edited by hand.
// Until then a second access to a loaded message does no I/O.
func (c *Context) Refresh(ctx context.Context) error {
	return Wrap(Error{Op: "refresh", Context: c.Dir.ID}, c.use(func() error { return c.refresh(ctx) }))
}

func (c *Context) refresh(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = c.Dir.Check()
	}
	if err == nil {
		err = c.Index.Refresh()
	}
	if err == nil {
		err = c.ReadMetadata()
	}
	c.Loader.Refresh()
	return Wrap(Error{Op: "refresh", Context: c.Dir.ID}, err)
}
