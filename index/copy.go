package index

import (
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Copy builds the index of a copy of a context. The caller adds the lines one after the other, and each line's entries
// in order. The caller has exclusive use of the folder.
type Copy struct {
	dir   *ctxfolder.Dir
	packs []uuid.UUID
	lines []FoldedLine
	rows  *rowsBuilder

	newestAt int64
}

// NewCopy begins the index of a context in its folder fsys, for the store with that id. packs are the packs copied with
// it, as [Log.Packs] returns them.
func NewCopy(fsys vfs.FS, store, context uuid.UUID, packs []uuid.UUID) *Copy {
	return &Copy{dir: &ctxfolder.Dir{ID: context, Store: store, FS: fsys}, packs: packs}
}

// Line begins a line.
func (c *Copy) Line(l *ctxfolder.Line) error {
	if err := c.endLine(); err != nil {
		return err
	}
	counts := Counts{Line: l.ID, Base: l.Base}
	c.lines = append(c.lines, FoldedLine{Counts: counts, Folder: l.Folder})
	rows, err := buildRows(c.dir, counts, 0, c.packs)
	if err == nil {
		c.rows = rows
	}
	return err
}

// Put adds the entry of the line's next position.
func (c *Copy) Put(e Entry) error {
	ln := &c.lines[len(c.lines)-1]
	e.Position, e.gen, e.off, e.seq = ln.End(), 0, 0, 0
	ln.add(&e)
	c.newestAt = max(c.newestAt, e.At)
	return c.rows.put(&e)
}

func (c *Copy) endLine() error {
	if c.rows == nil {
		return nil
	}
	rows := c.rows
	c.rows = nil
	var err error
	c.lines[len(c.lines)-1].Placement, err = rows.finish()
	return err
}

// Finish writes index.json and the journal for later appends. After an error, its own or failed, it only closes files.
//
// Crash order: the caller makes everything in the folder durable before the folder gets its name.
func (c *Copy) Finish(m *ctxfolder.Metadata, failed error) error {
	if err := c.endLine(); err != nil || failed != nil {
		return err
	}
	seq := uint64(max(m.Revision, 0))
	for i := range c.lines {
		seq += uint64(c.lines[i].Count)
	}
	j, x, err := beginFiles(c.dir, m, seq, c.lines, c.newestAt)
	if err != nil {
		return err
	}
	if err := vfs.WriteSynced(c.dir.FS, ctxfolder.JournalFile(firstJournal), j); err != nil {
		return err
	}
	return vfs.WriteSynced(c.dir.FS, ctxfolder.IndexFile, x)
}
