package trash

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// filesAtOnce bounds how many message files are removed during one hold of the locks.
const filesAtOnce = 256

// cutLine is a line of which a purge removes the end.
type cutLine struct {
	line   uuid.UUID
	from   int64       // where it ends now
	files  []uuid.UUID // of the messages that were cut
	search bool        // any file in the folder may be one of them: a purge was interrupted

	searched bool
}

// take notes the message files of positions that are about to be cut. An archived message may have one, too: an archive
// was interrupted, or a power cut brought the file back.
func (l *cutLine) take(ctx context.Context, c *engine.Context, from, end int64) error {
	l.from = from
	for e, err := range c.Log.All(ctx, l.line, from, end) {
		if err != nil {
			return err
		}
		l.files = append(l.files, e.FileID())
	}
	return nil
}

// removeFiles removes the message files beyond the end of a line, durably. It holds the fold lock, since a settle makes
// missing files.
func (l *cutLine) removeFiles(ctx context.Context, c *engine.Context) error {
	for {
		more := false
		err := c.Exclusively(ctx, func() error {
			if err := c.AwaitFiles(ctx); err != nil {
				return err
			}
			m := c.Current()
			line, ok := m.Line(l.line)
			if !ok {
				return nil
			}
			if l.search && !l.searched {
				if err := l.listFolder(c, line.Folder); err != nil {
					return err
				}
			}
			n := min(len(l.files), filesAtOnce)
			for _, file := range l.files[:n] {
				if err := l.removeFile(c, line.Folder, file); err != nil {
					return err
				}
			}
			l.files = l.files[n:]
			if more = len(l.files) > 0; more {
				return nil
			}
			err := c.Dir.FS.SyncDir(ctxfolder.Messages + "/" + line.Folder)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// listFolder takes every message file of the folder instead of those that are known.
func (l *cutLine) listFolder(c *engine.Context, folder string) error {
	l.files, l.searched = nil, true
	err := c.Dir.MessageIDs(folder, func(file uuid.UUID) error {
		l.files = append(l.files, file)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// removeFile removes a file that holds a message of the line beyond its end. The file of another message stays. A file
// without a message moves to the trash, if it has the name of one that was cut: a crash tore it.
func (l *cutLine) removeFile(c *engine.Context, folder string, file uuid.UUID) error {
	torn := false
	err := c.Dir.RemoveMessage(folder, file, func(raw []byte) bool {
		env, err := message.Parse(raw)
		torn = err != nil && !errors.Is(err, message.ErrVersion)
		return err == nil && env.Line == l.line && env.Position >= l.from
	})
	if err != nil || !torn || l.searched {
		return err
	}
	return c.Dir.SetAside(c.Dir.MessagePath(folder, file))
}

// forgetLines removes the purged lines from the metadata, and the branch folders that no line uses any more. If another
// purge has marked lines meanwhile, their files may still be there: the next purge forgets all of them.
//
// Crash order: the folders go first, durably, since only a line that the metadata still has leads the next purge to its
// folder, whose name is that of the branch. A purged line without a folder is as good as one with an empty folder.
func forgetLines(ctx context.Context, c *engine.Context, marked map[uuid.UUID]bool) error {
	return c.Write(ctx, func(current *engine.Metadata) error {
		others := func(r ctxfolder.Removed) bool { return r.Why == branch.WhyPurged && !marked[r.Line] }
		if slices.ContainsFunc(current.Removed, others) {
			return nil
		}
		m := current.Clone()
		branch.Forget(m)
		gone := false
		for _, l := range current.Lines {
			if !slices.ContainsFunc(m.Lines, func(stays ctxfolder.Line) bool { return stays.Folder == l.Folder }) {
				if err := c.Dir.RemoveFolder(l.Folder); err != nil {
					return err
				}
				gone = true
			}
		}
		if gone {
			if err := c.Dir.FS.SyncDir(ctxfolder.Messages); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return c.ReplaceMetadata(m)
	})
}
