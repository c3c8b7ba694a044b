package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

// RepairOptions configure a repair.
type RepairOptions struct {
	DryRun bool // plan only
	Adopt  bool // adopt valid messages that were never committed here
}

// repair is a repair in progress.
type repair struct {
	*examination
	opts     RepairOptions
	yield    func(Repaired) bool
	left     int     // problems that nothing can repair
	failed   []error // errors of failed repairs
	logsLost bool    // records of a log are lost: the files of messages may prove what was in it

	last  *index.Commit   // that may not be durable
	size  int             // of it and those before
	after []func() error  // to do when it is
	dirs  map[string]bool // folders to sync
	done  []Repaired
}

func (r *repair) did(p problem, format string, args ...any) {
	r.done = append(r.done, Repaired{Context: r.Dir.ID, Kind: p.Kind, Path: p.Path, ID: p.ID, Detail: fmt.Sprintf(format, args...)})
}

// locked runs f with the context locked. It serves the step that comes before the history can be read. r.Wait bounds only
// the wait for the locks.
func (r *repair) locked(ctx context.Context, f func() error) error {
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	if err := r.Dir.SealLock.Acquire(limited); err != nil {
		return err
	}
	defer r.Dir.SealLock.Release()
	if err := r.Dir.Lock.Acquire(limited); err != nil {
		return err
	}
	defer r.Dir.Lock.Release()
	err := r.Dir.Check()
	if err == nil {
		err = f()
	}
	if err == nil {
		err = r.flush()
	}
	return err
}

// exclusively is locked with the log ready for records, and the metadata current.
func (r *repair) exclusively(ctx context.Context, f func() error) error {
	return r.locked(ctx, func() error {
		if err := r.prepare(); err != nil {
			return err
		}
		return f()
	})
}

func (r *repair) prepare() error {
	r.note = nil
	if err := r.Index.Prepare(); err != nil {
		return err
	}
	return r.readMetadata()
}

func (r *repair) readMetadata() (err error) {
	r.metadata, _, err = r.effective()
	if r.metadata != nil || errors.Is(err, ctxfolder.ErrMetadata) {
		return nil
	}
	return err
}

// commit commits a record, and notes what to do when it is durable. The caller holds the locks.
func (r *repair) commit(item journal.Item, after func() error) error {
	if r.size += len(item.Body); r.size > 16<<20 {
		if err := r.flush(); err != nil {
			return err
		}
	}
	commit := r.Index.Append([]journal.Item{item}, false)
	if commit.Err == nil {
		r.last, r.after = commit, append(r.after, after)
	}
	return commit.Err
}

// flush makes durable what was done, and yields it.
//
// Crash order: the records are durable before the files change that they are about. Removals, and moves to the trash, are
// durable last: what comes back is found again.
func (r *repair) flush() error {
	if r.last != nil {
		if err := r.last.Sync(); err != nil {
			return err
		}
	}
	for _, f := range r.after {
		if err := f(); err != nil {
			return err
		}
	}
	for dir := range r.dirs {
		if err := r.Dir.FS.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	clear(r.dirs)
	done := r.done
	r.last, r.size, r.after, r.done = nil, 0, nil, nil
	for _, d := range done {
		if !r.yield(d) {
			return errStopped
		}
	}
	return nil
}

// setAside moves whatever is at a path of the context's folder to the trash.
func (r *repair) setAside(name string) error {
	_, err := r.Dir.FS.Lstat(name)
	if err == nil {
		r.dirs[path.Dir(name)] = true
		err = r.Dir.SetAside(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove removes a file for good.
func (r *repair) remove(name string) error {
	r.dirs[path.Dir(name)] = true
	if err := r.Dir.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fail notes why a problem could not be repaired. The others still can.
func (r *repair) fail(p problem, err error) {
	r.failed = append(r.failed, fmt.Errorf("%s %s: %w", p.Kind, cmp.Or(p.Path, p.ID.String()), err))
}

// keep copies a damaged file to the trash.
func (r *repair) keep(name string) error {
	return ctxfolder.TrashCopy(r.Dir, ctxfolder.TrashDamaged, name)
}

// keepHidden puts a message that the history does not show in the trash.
func (r *repair) keepHidden(line uuid.UUID, position int64, envelope []byte) error {
	return r.Dir.TrashVersionSynced(line, position, envelope, r.Dir.Latest(time.Now()))
}

// copyOf returns a message from its file, byte for byte as it was committed, or nil.
func (r *repair) copyOf(e *index.Entry) []byte {
	if r.metadata == nil || e.ID == uuid.Nil {
		return nil
	}
	line, ok := r.metadata.Line(e.Line)
	if !ok {
		return nil
	}
	raw, is, _ := views.Read(r.Dir, line.Folder, e)
	if is != views.Exact {
		return nil
	}
	return raw
}
