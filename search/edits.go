package search

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"

	"github.com/ctxdir/ctxdir"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// An update looks for edits by hand in about as many files as it can stat in 10 ms. The bound is a number of files, so that
// what it finds does not depend on the load of the machine.
const (
	editsBudget = 5000 // files
	editsOpen   = 50   // as many cost as much as opening a context
)

// verify looks for messages that were edited by hand since the last look: no commit tells of them. It compares the size
// and time of each message file with the rows of its context. Unless all is set, it does so within [editsBudget], and
// begins with a random context.
func (w *writer) verify(ctx context.Context, ids []uuid.UUID, all bool) error {
	disk, err := vfs.OS(w.x.dir)
	if err != nil {
		return nil // the store has no folder, or lost it
	}
	defer disk.Close()
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		if !all && w.looked >= editsBudget {
			break
		}
		w.looked += editsOpen
		// The next update reports the error of a context.
		if err := w.verifyContext(ctx, id, disk); err != nil && (ctx.Err() != nil || w.failed) {
			return err
		}
	}
	return nil
}

func (w *writer) verifyContext(ctx context.Context, id uuid.UUID, disk vfs.FS) error {
	return w.x.store.Use(ctx, id, func(c *ctxdir.Context) error {
		edited, err := w.lookAtFiles(ctx, c, disk)
		if err != nil || len(edited) == 0 {
			return err
		}
		if err := w.begin(ctx); err != nil {
			return err
		}
		return w.syncOpen(ctx, c, edited)
	})
}

// knownEdits returns the times of the edited files of a line that the index has.
func (w *writer) knownEdits(ctx context.Context, context, line uuid.UUID) (map[int64]int64, error) {
	const query = "SELECT position, edited FROM messages WHERE edited <> 0 AND line = " +
		"(SELECT n FROM lines WHERE id = ? AND context = (SELECT n FROM contexts WHERE id = ?))"
	q := w.x.db.QueryContext
	if w.tx != nil {
		q = w.tx.QueryContext
	}
	rows, err := q(ctx, query, line[:], context[:])
	if err != nil {
		return nil, w.fail(err)
	}
	defer rows.Close()
	known := map[int64]int64{}
	for rows.Next() {
		var position, edited int64
		if err := rows.Scan(&position, &edited); err != nil {
			return nil, w.fail(err)
		}
		known[position] = edited
	}
	return known, w.fail(rows.Err())
}

// lookAtFiles returns the messages of a context whose files are not as the index has them.
func (w *writer) lookAtFiles(ctx context.Context, c *ctxdir.Context, disk vfs.FS) (edits, error) {
	_, rows := c.Changes(ctx, "")
	_, lines := namesOf(c.Metadata())
	edited := edits{}
	var files lineFiles
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		if r.Line != files.line.ID || len(files.rows) == maxLook {
			if err := files.look(disk, edited); err != nil {
				return nil, err
			}
		}
		if r.Line != files.line.ID {
			i := slices.IndexFunc(lines, func(l metadataLine) bool { return l.ID == r.Line })
			if i < 0 {
				continue // of a later commit
			}
			files.line, files.folder = lines[i], path.Join(c.ID().String(), ctxfolder.Messages, lines[i].Folder)
			if files.known, err = w.knownEdits(ctx, c.ID(), r.Line); err != nil {
				return nil, err
			}
		}
		if !r.Gone && (r.Position >= files.line.Archived || files.known[r.Position] != 0) {
			w.looked++
			files.rows, files.names = append(files.rows, r), append(files.names, ctxfolder.MessageFile(r.ID))
		}
	}
	return edited, files.look(disk, edited)
}

// maxLook bounds the files that one call looks at.
const maxLook = 1024

// lineFiles are message files of a line.
type lineFiles struct {
	line   metadataLine
	folder string
	known  map[int64]int64 // the times of edited files that the index has
	rows   []ctxdir.Row    // to look at
	names  []string        // of their files
}

// look adds the messages whose files are not as the index has them.
func (f *lineFiles) look(disk vfs.FS, edited edits) error {
	if len(f.rows) == 0 {
		return nil
	}
	infos, err := f.stat(disk)
	if err != nil {
		return err
	}
	for i := range f.rows {
		r, at := &f.rows[i], int64(0)
		if infos[i] != nil && !ctxfolder.Untouched(infos[i], r.Size, r.StoredAt) {
			at = infos[i].ModTime().UnixNano()
		}
		if at == f.known[r.Position] {
			continue
		}
		if edited[r.Line] == nil {
			edited[r.Line] = map[int64]int64{}
		}
		edited[r.Line][r.Position] = at
	}
	f.rows, f.names = f.rows[:0], f.names[:0]
	return nil
}

func (f *lineFiles) stat(disk vfs.FS) ([]fs.FileInfo, error) {
	folder, err := disk.Sub(f.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return make([]fs.FileInfo, len(f.names)), nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return vfs.LstatIn(folder, ".", f.names...)
}
