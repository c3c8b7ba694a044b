package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Prefix copies the first n messages of a branch to a new context of the same store, with the metadata m: see
// [engine.Store.Create]. Without another one in m, the copy has the system prompt of the branch, and its context as
// parent. The messages keep their ids and times; they are on the line of the new branch "main". Payloads are shared. An
// unavailable message keeps its position, as lost or erased. Prefix holds one message in memory.
//
// It fails with [engine.ErrPosition] beyond the end of the branch, and with [engine.ErrExist].
//
// Crash order: as for [Copy], but that one rename gives the copy its place, which is free.
func Prefix(ctx context.Context, b *engine.Branch, n int64, m engine.Metadata) (*engine.Context, error) {
	c := b.Context()
	created := m.Clone()
	_, err := engine.Use(c, func() (struct{}, error) { return struct{}{}, copyPrefix(ctx, b, n, created) })
	if err == nil {
		return c.Store.Context(ctx, created.ID)
	}
	return nil, engine.Wrap(engine.Error{Op: "copy", Context: c.ID(), Branch: b.Name()}, err)
}

func copyPrefix(ctx context.Context, from *engine.Branch, n int64, m *engine.Metadata) error {
	c := from.Context()
	s := c.Store
	if s.ReadOnly {
		return engine.ErrReadOnly
	}
	if err := s.ChooseID(m); err != nil {
		return err
	}
	b := newCopier(c, s, m.ID)
	b.ix = c.Index
	return b.unsealed(ctx, func() error { return b.copyPrefix(ctx, from.Name(), n, m) })
}

func (b *copier) copyPrefix(ctx context.Context, name string, n int64, m *engine.Metadata) error {
	c, s := b.c, b.to
	err := c.Dir.Check()
	if err == nil {
		err = c.Index.Refresh()
	}
	if err == nil {
		err = c.ReadMetadata()
	}
	if err != nil {
		return err
	}
	source := c.Current()
	segments, err := b.prefix(source, name, n)
	if err != nil {
		return err
	}
	blobs := engine.BlobHold{Store: s}
	defer blobs.Release()
	if err := blobs.Hold(ctx); err != nil {
		return err
	}
	if of, err := branch.Get(source, name); err == nil && len(m.Branches) == 0 {
		m.Branches = []ctxfolder.Branch{{SystemPrompt: of.SystemPrompt}}
		m.Branches[0].Extra.Set(ctxfolder.BranchState, of.Extra.Get(ctxfolder.BranchState))
	}
	if m.ParentID == uuid.Nil {
		m.ParentID = source.ID
	}
	if err := s.Begin(m, func() error { return nil }); err != nil {
		return err
	}
	return b.staging(ctx, func() error {
		if err := ctxfolder.IsFree(s.FS, m.ID); err != nil {
			return err
		}
		if err := b.build(ctx, source, segments, m); err != nil {
			return err
		}
		if err := s.SyncStaged(m.ID, b.blobs); err != nil {
			return err
		}
		return ctxfolder.PublishNew(s.FS, m.ID)
	})
}

// prefix returns where the first n messages of a branch are.
func (b *copier) prefix(m *engine.Metadata, name string, n int64) ([]branch.Segment, error) {
	info, err := branch.Get(m, name)
	if err != nil {
		return nil, err
	}
	end, err := b.c.End(m, info.Line)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > end {
		return nil, fmt.Errorf("%w %d: the branch has %d messages", engine.ErrPosition, n, end)
	}
	return branch.Segments(m, info.Line, 0, n)
}

// build fills the folder of the copy: segments of the source become its only line.
func (b *copier) build(ctx context.Context, source *engine.Metadata, segments []branch.Segment, m *engine.Metadata) error {
	built, err := index.Build(index.FolderOf(b.to.ID(), b.id, b.staged), m)
	if err != nil {
		return err
	}
	defer built.Abort()
	if err := b.payloads(m.Branches[0].SystemPrompt); err != nil {
		return err
	}
	prev := uuid.Nil
	for _, segment := range segments {
		of, ok := source.Line(segment.Line)
		if !ok {
			return fmt.Errorf("%w: line %s not found", engine.ErrMetadata, segment.Line)
		}
		err := b.walk(ctx, of, segment.From, segment.To, func(x *shown) error {
			e, raw, err := b.move(x, &m.Lines[0], prev)
			if err == nil {
				prev = x.ID
				err = built.Add(e, raw)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	encoded, err := m.Encode()
	if err == nil {
		err = vfs.CreateFile(b.staged, ctxfolder.MetadataFile, encoded, index.Now())
	}
	if err == nil {
		err = built.Finish()
	}
	return err
}

// move makes the file of a message on another line, and copies its payloads. It returns what the history says of it.
func (b *copier) move(x *shown, to *ctxfolder.Line, prev uuid.UUID) (e index.Entry, raw []byte, err error) {
	gone := index.Entry{Line: to.ID, Position: x.Position, ID: x.ID, At: x.At, Gone: archive.Lost}
	if x.IsErased() {
		gone.Gone = archive.Erased
	}
	env, err := message.Parse(x.content())
	if err != nil {
		return gone, nil, nil //nolint:nilerr // the copy says that the message is unavailable
	}
	if err := b.payloads(env.Body); err != nil {
		return e, nil, err
	}
	env.ID, env.Line, env.Position, env.Prev, env.Branch = x.ID, to.ID, x.Position, prev, engine.MainBranch
	env.Payloads = blob.Count(env.Body)
	raw = env.AppendTo(make([]byte, 0, len(x.content())+64))
	err = b.file(to.Folder, x.ID, raw, ctxfolder.FileTime(raw, env.StoredAt))
	if errors.Is(err, fs.ErrExist) { // the branch shows the id twice
		return gone, nil, nil
	}
	return index.EntryOf(&env, raw), raw, err
}
