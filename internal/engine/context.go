package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

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
		return err
	}
	format, err := s.Legacy(m.ID)
	if format != "" {
		err = fmt.Errorf("%w: a legacy context has this id", ErrExist)
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
	m.CreatedAt, m.Revision = past(m.CreatedAt, now), 1
	m.UpdatedAt = past(m.UpdatedAt, now)
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

// past returns a time that is set and not in the future, and else now.
func past(at, now time.Time) time.Time {
	if at.IsZero() || at.After(now) {
		return now
	}
	return at
}

// OpenOrCreate opens the context with the kind and the external id of m, or creates it with m. Several processes that
// call it at once get the same context. It fails with [ErrInvalid] without an external id.
func (s *Store) OpenOrCreate(ctx context.Context, m Metadata) (*Context, error) {
	c, err := s.openOrCreate(ctx, m)
	return c, Wrap(Error{Op: "open", Context: m.ID}, err)
}

func (s *Store) openOrCreate(ctx context.Context, m Metadata) (c *Context, err error) {
	if m.ExternalID == "" {
		return nil, fmt.Errorf("%w: the external id is missing", ErrInvalid)
	}
	if err := m.TakeExternalID(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	const attempts = 10 // others may create and remove it meanwhile
	for range attempts {
		if c, err = s.Context(ctx, m.ID); !errors.Is(err, ErrNotExist) {
			return c, err
		}
		if c, err = s.Create(ctx, m); !errors.Is(err, ErrExist) {
			return c, err
		}
	}
	return nil, err
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
	if name, lerr := s.LegacyAt(id); lerr == nil && name != "" && s.Options.openLegacy != nil {
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
