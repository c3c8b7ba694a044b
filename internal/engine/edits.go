package engine

import (
	"context"
	"io/fs"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// CommitEdits commits what a person changed in the files of messages, and returns how many there were. It looks at the
// size and time of each file, and reads those that differ. The versions before go to the trash.
func (c *Context) CommitEdits(ctx context.Context) (n int, err error) {
	found, err := Use(c, func() ([]Place, error) { return c.edited(ctx) })
	if err == nil && len(found) > 0 {
		_, err = Use(c, func() (*Tx, error) {
			return c.run(ctx, false, conditions{}, func(tx *Tx) error {
				n = 0
				for i := range found {
					did, err := tx.takeEdit(&found[i])
					if err != nil {
						return err
					}
					if did {
						n++
					}
				}
				return nil
			})
		})
	}
	if err != nil {
		n = 0
	}
	return n, Wrap(Error{Op: "commit edits", Context: c.Dir.ID}, err)
}

// edited returns the messages, on lines that a branch or the trash shows, whose files a person edited.
func (c *Context) edited(ctx context.Context) (found []Place, err error) {
	m := c.Current()
	for line, end := range branch.Reach(m) {
		l, ok := m.Line(line)
		if !ok {
			continue
		}
		for page, err := range c.Index.Pages(ctx, line, l.Base, end) {
			if err != nil {
				return nil, err
			}
			infos, err := c.look(l.Folder, page)
			if err != nil {
				return nil, err
			}
			for i := range page {
				e := &page[i]
				if infos[i] == nil || ctxfolder.Untouched(infos[i], e.Size, e.StoredAt()) {
					continue
				}
				at := Place{Span: loader.Span{Line: line, Folder: l.Folder, From: l.Base, To: end}, Entry: *e}
				x, err := c.Loader.Load(ctx, at.Span, e)
				if err != nil {
					return nil, err
				}
				if x.Edited {
					found = append(found, at)
				}
			}
		}
	}
	return found, nil
}

// takeEdit makes the file of a message its next version, if a person edited it.
func (tx *Tx) takeEdit(at *Place) (did bool, err error) {
	c := tx.c
	e, ok, err := c.Index.Entry(at.Span.Line, at.Entry.Position)
	if err != nil || !ok || e.ID != at.Entry.ID {
		return false, err
	}
	x, err := c.Loader.Load(tx.ctx, at.Span, &e)
	if err != nil || !x.Edited {
		return false, err
	}
	_, env, err := c.Loader.Envelope(at.Span, &e)
	if err != nil || env.ID != e.ID {
		return false, err
	}
	old, _ := c.Index.ReadOne(&e) // nil if it is lost
	env.StoredAt, env.Payloads = e.Next(), blob.Count(env.Body)
	d := &PendingMessage{Draft: Draft{ID: env.ID, Body: env.Body}, Stored: env.Body}
	tx.supersede(Place{at.Span, e}, old, env, d)
	return true, nil
}

// look returns the state of the files of messages, nil for those that are missing.
func (c *Context) look(folder string, entries []index.Entry) ([]fs.FileInfo, error) {
	ids := make([]uuid.UUID, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
	}
	files := c.Dir.Files(folder)
	defer files.Release()
	return files.Stat(ids)
}
