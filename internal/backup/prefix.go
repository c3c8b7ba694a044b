package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
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
	// Mend a broken index first: writers cannot do that while the fold lock is held.
	if err := c.Exclusively(ctx, func() error { return nil }); err != nil {
		return err
	}
	if err := s.Acquire(ctx, c.Dir.FoldLock); err != nil {
		return err
	}
	defer c.Dir.FoldLock.Release()
	b := &copier{c: c, to: s, seen: map[blob.Sum]bool{}, folders: map[string]vfs.FS{}}
	if err := b.snapshot(ctx); err != nil {
		return err
	}
	source, segments, err := b.prefix(from.Name(), n)
	if err != nil {
		return err
	}
	blobs := engine.BlobHold{Store: s}
	defer blobs.Release()
	if err := blobs.Hold(ctx); err != nil {
		return err
	}
	if of, err := branch.Get(source, from.Name()); err == nil && len(m.Branches) == 0 {
		m.Branches = []ctxfolder.Branch{{SystemPrompt: of.SystemPrompt}}
		m.Branches[0].Extra.Set(ctxfolder.BranchState, of.Extra.Get(ctxfolder.BranchState))
	}
	if m.ParentID == uuid.Nil {
		m.ParentID = source.ID
	}
	if err := s.Begin(m, func() error { return nil }); err != nil {
		return err
	}
	b.m = m
	return b.locked(ctx, func() error {
		if err := ctxfolder.IsFree(s.FS, m.ID); err != nil {
			return err
		}
		if _, err := b.begin(ctx, false); err != nil {
			return err
		}
		err := b.stage(nil, func(copied *index.Copy) error { return b.line(ctx, source, segments, copied) })
		if err == nil {
			err = ctxfolder.PublishNew(s.FS, m.ID)
		}
		return err
	})
}

// prefix returns the metadata of the snapshot, and where the first n messages of a branch are.
func (b *copier) prefix(name string, n int64) (*engine.Metadata, []branch.Segment, error) {
	info, err := branch.Get(b.m, name)
	if err != nil {
		return nil, nil, err
	}
	line, ok := b.m.Line(info.Line)
	if !ok {
		return nil, nil, fmt.Errorf("%w: line %s is missing", engine.ErrMetadata, info.Line)
	}
	if end := max(b.counts[line.ID].End(), line.Base); n < 0 || n > end {
		return nil, nil, fmt.Errorf("%w %d: the branch has %d messages", engine.ErrPosition, n, end)
	}
	segments, err := branch.Segments(b.m, line.ID, 0, n)
	return b.m, segments, err
}

// line copies segments of the source to the only line of the copy.
func (b *copier) line(ctx context.Context, source *engine.Metadata, segments []branch.Segment, copied *index.Copy) error {
	line := &b.m.Lines[0]
	if err := b.payloads(b.m.Branches[0].SystemPrompt, &index.Entry{}); err != nil {
		return err
	}
	if len(segments) == 0 {
		return nil
	}
	if err := copied.Line(line); err != nil {
		return err
	}
	prev := uuid.Nil
	for _, segment := range segments {
		of, ok := source.Line(segment.Line)
		if !ok {
			return fmt.Errorf("%w: line %s is missing", engine.ErrMetadata, segment.Line)
		}
		for e, err := range b.c.Log.All(ctx, segment.Line, segment.From, segment.To) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = b.move(of, line, e, prev)
			}
			if err == nil {
				prev = e.ID
				err = copied.Put(*e)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// move copies a message to another line, with its payloads. The entry becomes the copy's.
func (b *copier) move(of, to *ctxfolder.Line, e *index.Entry, prev uuid.UUID) error {
	var env message.Envelope
	raw, _, err := b.read(of, e)
	if err == nil {
		env, err = message.Parse(raw)
	}
	if err != nil {
		e.File = uuid.Nil
		b.markLost(e, err)
		return nil
	}
	if err := b.payloads(env.Body, &index.Entry{}); err != nil {
		return err
	}
	env.Line, env.Prev, env.File, env.Branch, env.Payloads = to.ID, prev, uuid.Nil, engine.MainBranch, blob.Count(env.Body)
	raw = env.AppendTo(make([]byte, 0, len(raw)+64))
	folder, err := b.folder(to.Folder)
	if err != nil {
		return err
	}
	e.Pack, e.File, e.Lost, e.Payloads = uuid.Nil, uuid.Nil, "", env.Payloads
	e.Size, e.Sum, e.At = int64(len(raw)), message.Sum(raw), env.StoredAt.UnixNano()
	err = vfs.CreateFile(folder, ctxfolder.MessageFile(e.ID), append(raw, '\n'), ctxfolder.FileTime(raw, e.StoredAt()))
	if errors.Is(err, fs.ErrExist) { // the branch shows the id twice
		b.markLost(e, err)
		return nil
	}
	return err
}
