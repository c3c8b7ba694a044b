package search

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"

	"github.com/ctxdir/ctxdir"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// verify looks for messages that were edited by hand since the last look: no commit tells of them. It compares the size
// and time of each message file with the rows of its context. Unless all is set, it does so within [editsBudget], and
// begins with a random context.
func (w *writer) verify(ctx context.Context, ids []uuid.UUID, all bool) error {
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		if !all && w.looked >= editsBudget {
			break
		}
		w.looked += editsOpen
		// The next update reports the error of a context.
		if err := w.verifyContext(ctx, id); err != nil && (ctx.Err() != nil || w.failed) {
			return err
		}
	}
	return nil
}

func (w *writer) verifyContext(ctx context.Context, id uuid.UUID) error {
	return w.x.store.Use(ctx, id, func(c *ctxdir.Context) error {
		edited, err := w.lookAtFiles(ctx, c)
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
func (w *writer) lookAtFiles(ctx context.Context, c *ctxdir.Context) (edits, error) {
	store, err := os.OpenRoot(w.x.dir)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	_, rows := c.Changes(ctx, "")
	_, lines := namesOf(c.Metadata())
	edited := edits{}
	var files lineFiles
	defer func() { files.close() }()
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		if r.Line != files.line.ID {
			files.close()
			i := slices.IndexFunc(lines, func(l metadataLine) bool { return l.ID == r.Line })
			if i < 0 {
				continue // of a later commit
			}
			files = lineFiles{line: lines[i]}
			if files.known, err = w.knownEdits(ctx, c.ID(), r.Line); err != nil {
				return nil, err
			}
			if err := files.open(store, c.ID()); err != nil {
				return nil, err
			}
		}
		known := files.known[r.Position]
		if r.Gone || r.Position < files.line.Archived && known == 0 {
			continue
		}
		w.looked++
		at, err := files.editTime(&r)
		if err != nil {
			return nil, err
		}
		if at != known {
			if edited[r.Line] == nil {
				edited[r.Line] = map[int64]int64{}
			}
			edited[r.Line][r.Position] = at
		}
	}
	return edited, nil
}

// lineFiles are the message files of a line.
type lineFiles struct {
	line   metadataLine
	known  map[int64]int64 // the times of edited files that the index has
	folder *os.Root        // nil if it is missing
}

func (f *lineFiles) open(store *os.Root, context uuid.UUID) (err error) {
	f.folder, err = store.OpenRoot(path.Join(context.String(), ctxfolder.Messages, f.line.Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *lineFiles) close() {
	if f.folder != nil {
		_ = f.folder.Close()
	}
}

// editTime returns the time of a message's file, 0 if the file is as it was committed or missing.
func (f *lineFiles) editTime(r *ctxdir.Row) (int64, error) {
	if f.folder == nil {
		return 0, nil
	}
	info, err := f.folder.Lstat(ctxfolder.MessageFile(r.ID))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil || ctxfolder.Untouched(info, r.Size, r.StoredAt):
		return 0, err
	}
	return info.ModTime().UnixNano(), nil
}
