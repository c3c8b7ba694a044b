package integrity

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Store is the part of a store outside its contexts: the folders themselves, locks, staging and blobs.
type Store struct {
	FS       vfs.FS
	Payloads *Payloads
	ReadData bool // read every blob
}

// Check yields the problems of the store.
func (s *Store) Check(ctx context.Context, yield func(Finding) bool) error {
	for _, look := range []func(context.Context, func(Finding) error) error{s.folders, s.entries, s.unreferenced} {
		err := look(ctx, func(f Finding) error {
			if !yield(f) {
				return errStopped
			}
			return nil
		})
		if errors.Is(err, errStopped) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Repair moves anything else in the place of a folder or lock of the store to the trash, and yields what it did. It
// runs before the repair of contexts, which needs both. left is the number of remaining problems.
//
// Crash order: each move is one rename, into a trash item that exists by then.
func (s *Store) Repair(ctx context.Context, dryRun bool, yield func(Repaired) bool) (left int, err error) {
	return s.mend(ctx, s.folders, dryRun, yield, func(f Finding) (bool, error) { return true, s.setAside(f.Path) })
}

// RepairBlobs moves damaged unreferenced blobs to the trash; a power cut that takes a message may leave a part of its
// blob. It runs after all contexts of the store were repaired. A writer trusts only blobs that it has read, so none
// misses them. Nobody writes a whole blob in its place between the second look and the rename.
//
// Crash order: as in Repair.
func (s *Store) RepairBlobs(ctx context.Context, dryRun bool, yield func(Repaired) bool) (left int, err error) {
	s.ReadData = true
	return s.mend(ctx, s.unreferenced, dryRun, yield, func(f Finding) (done bool, err error) {
		err = s.Payloads.Alone(ctx, func() error {
			sum, _ := blob.ParseFile(path.Base(f.Path))
			if done = errors.Is(s.Payloads.Blobs.Verify(sum), blob.ErrDamaged); !done {
				return nil // the blob was stored again, or collected
			}
			return s.setAside(f.Path)
		})
		return done, err
	})
}

// mend moves what look finds to the trash.
func (s *Store) mend(
	ctx context.Context,
	look func(context.Context, func(Finding) error) error,
	dryRun bool,
	yield func(Repaired) bool,
	setAside func(Finding) (bool, error),
) (left int, err error) {
	var wrong []Finding
	err = look(ctx, func(f Finding) error {
		wrong = append(wrong, f)
		return nil
	})
	for _, f := range wrong {
		if err != nil {
			break
		}
		if !f.Repairable {
			left++
			continue
		}
		done, r := true, Repaired{Kind: f.Kind, Path: f.Path, Detail: f.Detail + "; would move it to the trash"}
		if !dryRun {
			r.Detail = "moved to the trash: " + f.Detail
			done, err = setAside(f)
		}
		if err == nil && done && !yield(r) {
			break
		}
	}
	return left, err
}

func (s *Store) setAside(name string) error {
	if err := s.Payloads.setAside(name); err != nil {
		return err
	}
	return s.FS.SyncDir(path.Dir(name))
}

// folders finds anything else in the place of a folder or a lock.
func (s *Store) folders(ctx context.Context, report func(Finding) error) error {
	for _, name := range []string{ctxfolder.Trash, ctxfolder.Staging, ctxfolder.Locks} {
		if err := s.folder(name, false, report); err != nil {
			return err
		}
	}
	for e, err := range s.entriesOf(ctx, ".") {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(e.Name()); ok && !e.IsDir() {
			err := report(Finding{
				Kind: KindContext, Severity: SeverityError, Path: e.Name(), Detail: "a context's folder was expected, but this is " + what(e.Type()),
			})
			if err != nil {
				return err
			}
		}
	}
	for e, err := range s.entriesOf(ctx, ctxfolder.Locks) {
		if err != nil {
			return err
		}
		if !e.Type().IsRegular() {
			err := report(Finding{
				Kind: KindLock, Severity: SeverityError, Path: ctxfolder.Locks + "/" + e.Name(), Repairable: true,
				Detail: "a lock file was expected, but this is " + what(e.Type()),
			})
			if err != nil {
				return err
			}
		}
	}
	return s.blobFolders(ctx, blob.Folder, 0, report)
}

// blobFolders checks a folder of blobs and the folders in it.
func (s *Store) blobFolders(ctx context.Context, folder string, depth int, report func(Finding) error) error {
	if err := s.folder(folder, true, report); err != nil || depth == 2 {
		return err
	}
	for e, err := range s.entriesOf(ctx, folder) {
		if err == nil && blob.IsFanOut(e.Name()) {
			err = s.blobFolders(ctx, folder+"/"+e.Name(), depth+1, report)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folder reports anything else in the place of a folder.
func (s *Store) folder(path string, repairable bool, report func(Finding) error) error {
	info, err := s.FS.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	return report(Finding{
		Kind:       KindFolder,
		Severity:   SeverityError,
		Path:       path,
		Repairable: repairable,
		Detail:     "a folder was expected, but this is " + what(info.Mode().Type()),
	})
}

// entriesOf yields the entries of a folder, none if it does not exist.
func (s *Store) entriesOf(ctx context.Context, folder string) func(yield func(fs.DirEntry, error) bool) {
	return func(yield func(fs.DirEntry, error) bool) {
		if info, err := s.FS.Lstat(folder); err != nil || !info.IsDir() {
			return
		}
		for e, err := range s.FS.ReadDir(folder) {
			if errors.Is(err, fs.ErrNotExist) {
				return
			}
			if err == nil {
				err = ctx.Err()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// what names a kind of file.
func what(t fs.FileMode) string {
	switch {
	case t.IsRegular():
		return "a file"
	case t.IsDir():
		return "a folder"
	case t&fs.ModeSymlink != 0:
		return "a link, which is not followed"
	}
	return "neither a file nor a folder"
}

// entries checks staging for unknown entries.
func (s *Store) entries(ctx context.Context, report func(Finding) error) error {
	for e, err := range s.entriesOf(ctx, ctxfolder.Staging) {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(e.Name()); ok {
			continue
		}
		err := report(Finding{Kind: KindStray, Severity: SeverityInfo, Path: ctxfolder.Staging + "/" + e.Name(), Detail: "unknown file"})
		if err != nil {
			return err
		}
	}
	return nil
}

// unreferenced verifies the blobs that nothing refers to.
func (s *Store) unreferenced(ctx context.Context, report func(Finding) error) error {
	if info, err := s.FS.Lstat(blob.Folder); !s.ReadData || err != nil || !info.IsDir() {
		return nil //nolint:nilerr // an item in its place was reported
	}
	for sum, err := range s.Payloads.Blobs.Walk(nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		why := s.Payloads.Verify(sum)
		if why == nil || errors.Is(why, fs.ErrNotExist) {
			continue
		}
		if vfs.IsShortage(why) {
			return why
		}
		err := report(Finding{
			Kind: KindBlob, Severity: SeverityWarning, Path: blob.Path(sum), Repairable: errors.Is(why, blob.ErrDamaged),
			Detail: "no message refers to it: " + why.Error(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
