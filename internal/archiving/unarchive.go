package archiving

import (
	"context"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Unarchive makes the files of all archived messages again. progress, unless nil, receives the number of messages examined
// so far.
//
// Crash order: the metadata says that the messages have files again before the first is made. After a crash in between, a
// repair makes the others.
func Unarchive(ctx context.Context, c *engine.Context, progress func(done, all int64)) (Result, error) {
	done, err := engine.Use(c, func() (done Result, err error) {
		if c.Store.ReadOnly {
			return done, engine.ErrReadOnly
		}
		changed := false
		err = c.Write(ctx, func(m *engine.Metadata) error {
			m = m.Clone()
			for i := range m.Lines {
				l := &m.Lines[i]
				changed = changed || l.Archived > 0
				l.Archived, l.ArchivedBytes = 0, 0
			}
			if !changed {
				return nil
			}
			return c.ReplaceMetadata(m)
		})
		if err != nil || !changed {
			return done, err
		}
		for _, l := range c.Current().Lines {
			if err := makeViews(ctx, c, l.ID, &done, progress); err != nil {
				return done, err
			}
		}
		return done, nil
	})
	done.Context = c.Dir.ID
	return done, engine.Wrap(engine.Error{Op: "unarchive", Context: c.Dir.ID}, err)
}

// madeAtOnce bounds how many files are made during one hold of the lock, and madeBytes the length of their envelopes, unless
// one is longer.
const (
	madeAtOnce = 256
	madeBytes  = 8 << 20
)

// makeViews makes the missing files of a line.
func makeViews(ctx context.Context, c *engine.Context, line uuid.UUID, done *Result, progress func(done, all int64)) error {
	counts, ok, err := c.Index.Counts(line)
	if err != nil || !ok {
		return err
	}
	for page, err := range c.Index.Pages(ctx, line, counts.Base, counts.End()) {
		if err != nil {
			return err
		}
		for len(page) > 0 {
			n, size := 1, page[0].Size
			for n < min(len(page), madeAtOnce) && size+page[n].Size <= madeBytes {
				size += page[n].Size
				n++
			}
			if err := makeSome(ctx, c, page[:n], done); err != nil {
				return err
			}
			if progress != nil {
				progress(page[n-1].Position+1-counts.Base, counts.Count)
			}
			page = page[n:]
		}
	}
	return nil
}

// makeSome makes the missing files of messages of a line, of which the entries may be out of date. It does so under the
// context's lock: then nothing removes a message meanwhile.
func makeSome(ctx context.Context, c *engine.Context, page []index.Entry, done *Result) error {
	return c.Write(ctx, func(m *engine.Metadata) error {
		line, ok := m.Line(page[0].Line)
		if !ok {
			return nil // it went with its branch
		}
		now, err := c.Index.Entries(line.ID, page[0].Position, page[len(page)-1].Position+1)
		if err != nil {
			return err
		}
		missing, err := withoutFiles(c, line, now)
		if err != nil {
			return err
		}
		committed := make([][]byte, len(missing))
		c.Index.Read(missing, committed)
		for i, e := range missing {
			if committed[i] == nil {
				continue // reading the message reports this
			}
			if err := c.Dir.CreateMessage(line.Folder, e.ID, committed[i], e.StoredAt()); err != nil {
				return err
			}
			done.Messages, done.After = done.Messages+1, done.After+e.Size+1
		}
		return nil
	})
}

// withoutFiles returns the entries of those messages that should have a file, and have none.
func withoutFiles(c *engine.Context, line *ctxfolder.Line, entries []index.Entry) ([]index.Entry, error) {
	ids := make([]uuid.UUID, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
	}
	files := c.Dir.Files(line.Folder)
	infos, err := files.Stat(ids)
	files.Release()
	if err != nil {
		return nil, err
	}
	var missing []index.Entry
	for i := range entries {
		if e := &entries[i]; infos[i] == nil && e.Gone == archive.Here && e.Position >= line.Archived {
			missing = append(missing, *e)
		}
	}
	return missing, nil
}
