package trash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// restoreLine appends the end of a line to what the line has now, and gives the line a branch.
//
// Crash order: the line is in metadata.json before its first record, so that a fold knows the folder of its files.
// Until the line has a branch, a collection would collect it again, and the item still exists. The line gets its branch
// once all messages are durable. The item goes after that.
func restoreLine(ctx context.Context, c *engine.Context, t *trashItem, r *RestoreResult) error {
	x := &lineRestore{c: c, info: &t.Item, gaps: map[int64]string{}, ids: map[uuid.UUID]bool{}}
	if i := x.info; i.Line == uuid.Nil || !ctxfolder.ValidFolder(i.Folder) ||
		i.Base < 0 || i.Base > 0 && i.Parent == uuid.Nil || i.From < i.Base || i.To < i.From {
		return fmt.Errorf("%w: %s is implausible", engine.ErrDamaged, t.Path)
	}
	// What a crash left behind must not pass for the restored messages.
	if err := clearItemFiles(ctx, c, t.TrashEntry); err != nil {
		return err
	}
	if err := x.returnLine(ctx); err != nil {
		return err
	}
	for k, err := range itemMessages(c.Dir.FS, t.Path, x.info) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = x.add(ctx, k)
		}
		if err != nil {
			return err
		}
	}
	if err := x.flush(ctx); err != nil {
		return err
	}
	if err := x.name(ctx, r); err != nil {
		return err
	}
	if err := x.mark(ctx); err != nil {
		return err
	}
	c.FoldIfDue()
	r.Path, r.Messages, r.Missing, r.Bytes = c.Dir.ID.String()+"/"+ctxfolder.Messages+"/"+x.folder, x.messages, int64(len(x.gaps)), x.bytes
	return nil
}

// lineRestore is the end of a line during its restore.
type lineRestore struct {
	c        *engine.Context
	info     *ctxfolder.TrashItem
	folder   string
	batch    []*itemMessage
	size     int // of the batch, in bytes
	messages int64
	bytes    int64
	gaps     map[int64]string // positions without a message, and the reasons
	ids      map[uuid.UUID]bool
}

// returnLine puts the line back into the table of lines if it is missing there.
func (x *lineRestore) returnLine(ctx context.Context) error {
	c, info := x.c, x.info
	line := ctxfolder.Line{ID: info.Line, Parent: info.Parent, Base: info.Base, Folder: info.Folder}
	return c.Change(ctx, func(m *engine.Metadata) error {
		err := branch.Return(m, line, info.Name, func(id uuid.UUID) (int64, error) { return c.End(m, id) })
		if errors.Is(err, branch.ErrPosition) {
			return restoreFirstError(c, info.Parent, info.Base-1)
		}
		if err != nil {
			return err
		}
		l, _ := m.Line(info.Line)
		if l.Parent != info.Parent || l.Base != info.Base {
			return fmt.Errorf("%w: line %s begins elsewhere", engine.ErrConflict, l.ID)
		}
		x.folder = l.Folder
		end, err := c.End(m, l.ID)
		if err == nil && end < info.From {
			err = restoreFirstError(c, l.ID, info.From-1)
		}
		return err
	})
}

func (x *lineRestore) add(ctx context.Context, k *itemMessage) error {
	if k.Gap != nil {
		x.gaps[k.Position] = k.Gap.Reason
	} else {
		engine.EachMention(k.Body, func(sum blob.Sum) { touch(x.c.Store, sum) })
		if x.ids[k.ID] {
			return fmt.Errorf("%w: message %s is a duplicate", engine.ErrDamaged, k.ID)
		}
		x.ids[k.ID] = true
		if recount(&k.Envelope) {
			k.raw = k.AppendTo(nil)
		}
		x.messages, x.bytes = x.messages+1, x.bytes+int64(len(k.raw))
	}
	x.batch, x.size = append(x.batch, k), x.size+len(k.raw)
	if x.size >= engine.CommitBytes {
		return x.flush(ctx)
	}
	return nil
}

// flush commits the batch. It skips messages that an earlier restore brought back.
func (x *lineRestore) flush(ctx context.Context) error {
	err := x.c.Write(ctx, func(m *engine.Metadata) error {
		folder, items, err := x.items(ctx, m)
		if err != nil || len(items) == 0 {
			return err
		}
		if err := x.c.CommitDurably(items); err != nil {
			return err
		}
		for _, it := range items {
			// A file that cannot be made is no error: the journal holds the message, and the next settle makes the
			// file.
			_ = x.c.Dir.CreateMessage(folder, it.Envelope.FileID(), it.Body, it.Envelope.StoredAt)
		}
		return nil
	})
	if err == nil {
		x.batch, x.size = nil, 0
	}
	return err
}

// items returns the records of the missing messages, and the line's folder. The caller holds the lock.
func (x *lineRestore) items(ctx context.Context, m *engine.Metadata) (folder string, items []index.Item, err error) {
	c := x.c
	line, ok := m.Line(x.info.Line)
	if !ok {
		return "", nil, fmt.Errorf("%w: line %s was removed meanwhile", engine.ErrNotExist, x.info.Line)
	}
	end, err := c.End(m, line.ID)
	if err != nil {
		return "", nil, err
	}
	prev, err := c.IDBefore(m, line.ID, end)
	if err != nil {
		return "", nil, err
	}
	for _, k := range x.batch {
		env, raw := k.Envelope, k.raw // a copy, since an attempt that meets a broken index is repeated with what trash has
		if k.Gap != nil {
			env, raw = x.placeholder(k.Gap, prev), nil
		}
		item := index.Item{Kind: index.KindAppend, Envelope: &env}
		if k.Position < end {
			there, now, err := x.isPresent(ctx, line, k, env.ID)
			if err != nil {
				return "", nil, err
			}
			if there {
				continue
			}
			item.Kind, item.Was = index.KindReplace, now.Size
		}
		file := env.File
		if k.Gap == nil {
			if file, err = freeFile(c, m, line, &env); err != nil {
				return "", nil, err
			}
		}
		if raw == nil || file != env.File {
			env.File = file
			raw = env.AppendTo(nil)
		}
		item.Body = raw
		items = append(items, item)
		prev, end = env.ID, max(end, k.Position+1)
	}
	return line.Folder, items, nil
}

// isPresent reports whether a position already has its message, because it returned earlier or never left. An index
// rebuilt from leftover rows can count a message that only trash has: it has to take its entry's place.
func (x *lineRestore) isPresent(ctx context.Context, line *ctxfolder.Line, k *itemMessage, id uuid.UUID) (bool, *index.Entry, error) {
	span := loader.Span{Line: line.ID, Folder: line.Folder, From: k.Position, To: k.Position + 1}
	for e, err := range x.c.Log.All(ctx, span.Line, span.From, span.To) {
		if err != nil {
			return false, nil, err
		}
		if e.ID != id {
			break
		}
		if e.Lost == index.Erased {
			x.gaps[k.Position] = index.Erased // it stays erased, whatever trash has
			return true, e, nil
		}
		raw, err := readStored(x.c, span, e)
		if err == nil && k.Gap != nil && !isPlaceholder(raw, k.Gap.Reason) {
			delete(x.gaps, k.Position) // another item had it
		}
		var lost *lostError
		if errors.As(err, &lost) {
			return k.Gap != nil, e, nil
		}
		return err == nil, e, err
	}
	return false, nil, fmt.Errorf("%w: position %d of line %s", engine.ErrConflict, k.Position, line.ID)
}

// freeFile returns the file name for a restored message, since another line in the same folder may have taken its id.
// It ignores a name in trash that is not the message's own: that may be another message's.
func freeFile(c *engine.Context, m *engine.Metadata, line *ctxfolder.Line, env *message.Envelope) (uuid.UUID, error) {
	if derived := message.DerivedID(line.ID, env.ID.String()); env.File == derived {
		return derived, nil
	}
	raw, _, err := c.Dir.ReadMessage(line.Folder, env.ID)
	if err == nil {
		if there, perr := message.Parse(raw); perr == nil && there.Line == line.ID && there.Position == env.Position {
			return uuid.Nil, nil
		}
	}
	return c.FileFor(m, line, env.ID, errors.Is(err, fs.ErrNotExist))
}

// placeholder fills the position of a message that trash does not have, until mark marks it.
func (x *lineRestore) placeholder(g *Gap, prev uuid.UUID) message.Envelope {
	id := g.ID
	if id == uuid.Nil {
		id = message.DerivedID(x.info.Line, strconv.FormatInt(g.Position, 10))
	}
	return message.Envelope{
		ID: id, Line: x.info.Line, Position: g.Position, Prev: prev, StoredAt: index.Now(), File: x.placeholderFile(g.Position),
		Body: placeholderBody(g.Reason),
	}
}

// placeholderFile returns an unused file name. The id may be in use: an erased message can be appended again.
func (x *lineRestore) placeholderFile(position int64) uuid.UUID {
	return message.DerivedID(x.info.Line, "gap "+strconv.FormatInt(position, 10))
}

func placeholderBody(reason string) json.RawMessage {
	quoted, _ := json.Marshal(reason)
	return fmt.Appendf(nil, `{"unavailable":%s}`, quoted)
}

func isPlaceholder(raw []byte, reason string) bool {
	env, err := message.Parse(raw)
	return err == nil && bytes.Equal(env.Body, placeholderBody(reason))
}

// name gives the line a branch.
func (x *lineRestore) name(ctx context.Context, r *RestoreResult) error {
	return x.c.Change(ctx, func(m *engine.Metadata) (err error) {
		r.Branch, err = branch.Name(m, x.info.Line, x.info.Name)
		return err
	})
}

// mark marks the positions without a message. The placeholder records must go first.
func (x *lineRestore) mark(ctx context.Context) error {
	if len(x.gaps) == 0 {
		return nil
	}
	c := x.c
	err := c.Store.AcquireWith(ctx, func(ctx context.Context) error { return c.Log.Fold(ctx, true) })
	if err != nil {
		return err
	}
	return c.Store.AcquireWith(ctx, func(ctx context.Context) error {
		return c.Log.Exclusively(ctx, func() error {
			if err := c.Log.Retire(); err != nil {
				return err
			}
			if err := c.Log.Mark(x.info.Line, x.gaps); err != nil {
				return err
			}
			for position, reason := range x.gaps {
				entries, err := c.Log.Entries(x.info.Line, position, position+1)
				if err != nil || len(entries) == 0 {
					return err
				}
				// The row of an erased message does not contain the file's name.
				id := entries[0].ID
				for _, file := range []uuid.UUID{x.placeholderFile(position), id, message.DerivedID(x.info.Line, id.String())} {
					err := c.Dir.RemoveMessage(x.folder, file, func(raw []byte) bool {
						env, err := message.Parse(raw)
						return err == nil && env.Line == x.info.Line && isPlaceholder(raw, reason)
					})
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}
