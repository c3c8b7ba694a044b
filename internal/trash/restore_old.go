package trash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strconv"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// restoreOld restores the end of a line that a collection of the format before copied to the trash: it gives the line a
// branch, and appends the messages at their positions.
//
// Crash order: the branch is committed first, and the item goes last. A restore that is repeated skips the messages
// that the line has.
func restoreOld(ctx context.Context, c *engine.Context, t *trashItem, r *RestoreResult) error {
	i := &t.Item
	if i.Line == uuid.Nil || !ctxfolder.ValidFolder(i.Folder) || i.Base < 0 || i.From < i.Base || i.To < i.From {
		return fmt.Errorf("%w: %s is implausible", engine.ErrDamaged, t.Path)
	}
	there := map[uuid.UUID]bool{}
	for env, err := range oldMessages(c.Dir.FS, t) { // before anything changes
		if err == nil && there[env.ID] {
			err = fmt.Errorf("%w: %s has message %s twice", engine.ErrDamaged, t.Path, env.ID)
		}
		if err != nil {
			return err
		}
		there[env.ID] = true
	}
	err := c.Change(ctx, func(m *engine.Metadata) (err error) {
		r.Branch, err = returnLine(c, m, i)
		return err
	})
	if err != nil {
		return err
	}
	var batch []message.Envelope
	size := 0
	for env, err := range oldMessages(c.Dir.FS, t) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		batch, size = append(batch, env), size+len(env.Body)
		if size >= engine.CommitBytes {
			if err := appendOld(ctx, c, i, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		if r.Bytes += int64(len(env.Body)); isPlaceholder(&env) {
			r.Missing++
		} else {
			r.Messages++
		}
	}
	if err := appendOld(ctx, c, i, batch); err != nil {
		return err
	}
	c.Wrote()
	r.Path = c.Dir.ID.String() + "/" + ctxfolder.Messages + "/" + i.Folder
	return nil
}

// returnLine puts the line of an item into the table of lines if it is missing there, and gives it a branch.
func returnLine(c *engine.Context, m *engine.Metadata, i *ctxfolder.TrashItem) (name string, err error) {
	line := ctxfolder.Line{ID: i.Line, Parent: i.Parent, Base: i.Base, Folder: i.Folder}
	err = branch.Return(m, line, i.Name, func(id uuid.UUID) (int64, error) { return c.End(m, id) })
	if errors.Is(err, branch.ErrPosition) {
		return "", restoreFirstError(c, i.Parent, i.Base-1)
	}
	if err != nil {
		return "", err
	}
	l, _ := m.Line(i.Line)
	if l.Parent != i.Parent || l.Base != i.Base {
		return "", fmt.Errorf("%w: line %s begins elsewhere", engine.ErrConflict, l.ID)
	}
	i.Folder = l.Folder
	end, err := c.End(m, l.ID)
	if err == nil && end < i.From {
		err = restoreFirstError(c, l.ID, i.From-1)
	}
	if err != nil {
		return "", err
	}
	return branch.Name(m, l.ID, i.Name)
}

// appendOld commits messages at their positions. It skips those that an earlier restore brought back.
func appendOld(ctx context.Context, c *engine.Context, i *ctxfolder.TrashItem, batch []message.Envelope) error {
	return c.Write(ctx, func(m *engine.Metadata) error {
		line, ok := m.Line(i.Line)
		if !ok {
			return fmt.Errorf("%w: line %s was removed meanwhile", engine.ErrNotExist, i.Line)
		}
		end, err := c.End(m, line.ID)
		if err != nil {
			return err
		}
		var items []index.Item
		for _, env := range batch {
			if env.Position < end {
				there, err := c.Log.Entries(line.ID, env.Position, env.Position+1)
				if err == nil && !isPlaceholder(&env) && (len(there) == 0 || there[0].ID != env.ID) {
					err = fmt.Errorf("%w: position %d of line %s", engine.ErrConflict, env.Position, line.ID)
				}
				if err != nil {
					return err
				}
				continue
			}
			engine.EachMention(env.Body, func(sum blob.Sum) { touch(c.Store, sum) })
			recount(&env)
			if derived := message.DerivedID(line.ID, env.ID.String()); env.File != derived {
				if env.File, err = c.FileFor(m, line, env.ID, false); err != nil {
					return err
				}
			}
			items = append(items, index.Item{Kind: index.KindAppend, Envelope: &env, Body: env.AppendTo(nil)})
		}
		if len(items) == 0 {
			return nil
		}
		if err := c.CommitDurably(items); err != nil {
			return err
		}
		for _, it := range items {
			// A file that cannot be made is no error: the journal holds the message, and the next settle makes the file.
			_ = c.Dir.CreateMessage(line.Folder, it.Envelope.FileID(), it.Body, it.Envelope.StoredAt)
		}
		return nil
	})
}

// IsPiece reports whether a path, in a store's or a context's folder, is a file of messages in a trash item.
func IsPiece(p string) bool {
	item, name := path.Split(p)
	var n int
	_, err := fmt.Sscanf(name, "messages-%d.jsonl", &n)
	return err == nil && name == ctxfolder.PieceFile(n) && path.Dir(path.Clean(item)) == ctxfolder.Trash
}

// oldMessages yields the messages of an item that holds the end of a line, one for each position: a placeholder where
// the item has a gap, or an empty line. An error ends the sequence. It wraps [engine.ErrDamaged] if the item is not as
// it was written.
func oldMessages(fsys vfs.FS, t *trashItem) iter.Seq2[message.Envelope, error] {
	return func(yield func(message.Envelope, error) bool) {
		i, next := &t.Item, t.Item.From
		damaged := func(format string, args ...any) {
			yield(message.Envelope{}, fmt.Errorf("%w: %s, position %d: %s", engine.ErrDamaged, t.Path, next, fmt.Sprintf(format, args...)))
		}
		for n := 1; ; n++ {
			b, err := vfs.ReadFile(fsys, t.Path+"/"+ctxfolder.PieceFile(n), ctxfolder.MaxMessage)
			if errors.Is(err, fs.ErrNotExist) {
				if next != i.To {
					damaged("its messages end before %d", i.To)
				}
				return
			}
			if err != nil {
				yield(message.Envelope{}, err)
				return
			}
			for line := range bytes.Lines(b) {
				env := placeholder(i.Line, next)
				line = bytes.TrimSuffix(line, []byte("\n"))
				if len(line) > 0 && !bytes.HasPrefix(line, []byte(`{"ctxdir":"gap/1"`)) {
					env, err = message.Parse(line)
				}
				if err != nil || env.Line != i.Line || env.Position != next || next >= i.To {
					damaged("it has message %d of line %s, %v", env.Position, env.Line, err)
					return
				}
				if !yield(env, nil) {
					return
				}
				next++
			}
		}
	}
}

const unavailable = `{"unavailable":"the trash did not have this message"}`

// placeholder keeps the position of a message that an item does not have.
func placeholder(line uuid.UUID, position int64) message.Envelope {
	id := message.DerivedID(line, "gap "+strconv.FormatInt(position, 10))
	return message.Envelope{ID: id, Line: line, Position: position, StoredAt: index.Now(), Body: json.RawMessage(unavailable)}
}

func isPlaceholder(env *message.Envelope) bool {
	return env.ID == message.DerivedID(env.Line, "gap "+strconv.FormatInt(env.Position, 10))
}

// recount sets an envelope's number of references to that in its message. After an edit by hand the number can be
// wrong, and a sweep relies on it.
func recount(env *message.Envelope) { env.Payloads = blob.Count(env.Body) }
