package index

import (
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Copy makes the index of a copy of a context: its lines one after the other, and their entries in order. Nobody else may be
// at work in the folder.
type Copy struct {
	dir   *ctxfolder.Dir
	packs []uuid.UUID
	lines []FoldedLine
	rows  *rowsBuilder

	newestAt int64
}

// NewCopy begins the index of a context in its folder fsys, for the store of that id. packs are those that are copied with it, as
// [Log.Packs] returns them.
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
	c.lines[len(c.lines)-1].Stored, err = rows.finish()
	return err
}

// Finish writes the journal to go on in, and index.json. With an error, given or of its own, it only lets go of what is open.
//
// Crash order: the folder gets its name when everything in it is durable, which is for the caller to see to.
func (c *Copy) Finish(m *ctxfolder.Metadata, failed error) error {
	if err := c.endLine(); err != nil || failed != nil {
		return err
	}
	const first = 1
	now := time.Now().UTC()
	seq := uint64(max(m.Revision, 0))
	counts := make([]Counts, 0, len(c.lines))
	for _, ln := range c.lines {
		counts = append(counts, ln.Counts)
		seq += uint64(ln.Count)
	}
	j, err := encodeBegin(begin{
		Context: c.dir.ID, Store: c.dir.Store, Generation: first, Seq: seq, Lines: counts,
		Metadata: ctxfolder.RawMetadata(m), CreatedAt: now,
	})
	if err != nil {
		return err
	}
	if err := vfs.WriteSynced(c.dir.FS, ctxfolder.JournalFile(first), j); err != nil {
		return err
	}
	x, err := folded{
		Context: c.dir.ID, Store: c.dir.Store, Seq: seq, Journals: []uint64{first}, Live: first, RowWidth: rowWidth,
		UpdatedAt: now, NewestAt: timeOrZero(c.newestAt), Lines: c.lines,
	}.encode()
	if err != nil {
		return err
	}
	return vfs.WriteSynced(c.dir.FS, ctxfolder.IndexFile, x)
}
