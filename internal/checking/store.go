package checking

import (
	"context"
	"errors"
	"io/fs"
	"path"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// errStopped ends a check whose caller has stopped iterating.
var errStopped = errors.New("stopped")

// outside is the part of a store outside its contexts: the folders themselves, locks, staging and blobs.
type outside struct {
	fs       vfs.FS
	payloads *integrity.Payloads
	readData bool // read every blob
}

// check yields the problems of the store.
func (s *outside) check(ctx context.Context, yield func(integrity.Finding) bool) error {
	for _, look := range []func(context.Context, func(integrity.Finding) error) error{s.folders, s.entries, s.unreferenced} {
		err := look(ctx, func(f integrity.Finding) error {
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

// repair moves anything else in the place of a folder or lock of the store to the trash, and yields what it did. It
// runs before the repair of contexts, which needs both. left is the number of remaining problems.
//
// Crash order: each move is one rename, into a trash item that exists by then.
func (s *outside) repair(ctx context.Context, dryRun bool, yield func(integrity.Repaired) bool) (left int, err error) {
	return s.mend(ctx, s.folders, dryRun, yield, func(f integrity.Finding) (bool, error) { return true, s.setAside(f.Path) })
}

// repairBlobs moves damaged unreferenced blobs to the trash; a power cut that takes a message may leave a part of its
// blob. It runs after all contexts of the store were repaired. A writer trusts only blobs that it has read, so none
// misses them. No process writes an intact blob in its place between the second look and the rename.
//
// Crash order: as in repair.
func (s *outside) repairBlobs(ctx context.Context, dryRun bool, yield func(integrity.Repaired) bool) (left int, err error) {
	s.readData = true
	return s.mend(ctx, s.unreferenced, dryRun, yield, func(f integrity.Finding) (done bool, err error) {
		err = s.payloads.Alone(ctx, func() error {
			sum, _ := blob.ParseFile(path.Base(f.Path))
			if done = errors.Is(s.payloads.Blobs.Verify(sum), blob.ErrDamaged); !done {
				return nil // the blob was stored again, or collected
			}
			return s.setAside(f.Path)
		})
		return done, err
	})
}

// mend moves what look finds to the trash.
func (s *outside) mend(
	ctx context.Context,
	look func(context.Context, func(integrity.Finding) error) error,
	dryRun bool,
	yield func(integrity.Repaired) bool,
	setAside func(integrity.Finding) (bool, error),
) (left int, err error) {
	var wrong []integrity.Finding
	err = look(ctx, func(f integrity.Finding) error {
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
		done, r := true, integrity.Repaired{Kind: f.Kind, Path: f.Path, Detail: f.Detail + "; would move it to the trash"}
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

func (s *outside) setAside(name string) error {
	if err := s.payloads.SetAside(name); err != nil {
		return err
	}
	return s.fs.SyncDir(path.Dir(name))
}

// folders finds anything else in the place of a folder or a lock.
func (s *outside) folders(ctx context.Context, report func(integrity.Finding) error) error {
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
			err := report(integrity.Finding{
				Kind: integrity.KindContext, Severity: integrity.SeverityError, Path: e.Name(),
				Detail: "a context's folder was expected, but this is " + vfs.TypeName(e.Type()),
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
			err := report(integrity.Finding{
				Kind: integrity.KindLock, Severity: integrity.SeverityError, Path: ctxfolder.Locks + "/" + e.Name(), Repairable: true,
				Detail: "a lock file was expected, but this is " + vfs.TypeName(e.Type()),
			})
			if err != nil {
				return err
			}
		}
	}
	return s.blobFolders(ctx, blob.Folder, 0, report)
}

// blobFolders checks a folder of blobs and the folders in it.
func (s *outside) blobFolders(ctx context.Context, folder string, depth int, report func(integrity.Finding) error) error {
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
func (s *outside) folder(path string, repairable bool, report func(integrity.Finding) error) error {
	info, err := s.fs.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	return report(integrity.Finding{
		Kind:       integrity.KindFolder,
		Severity:   integrity.SeverityError,
		Path:       path,
		Repairable: repairable,
		Detail:     "a folder was expected, but this is " + vfs.TypeName(info.Mode().Type()),
	})
}

// entriesOf yields the entries of a folder, none if it does not exist.
func (s *outside) entriesOf(ctx context.Context, folder string) func(yield func(fs.DirEntry, error) bool) {
	return func(yield func(fs.DirEntry, error) bool) {
		if info, err := s.fs.Lstat(folder); err != nil || !info.IsDir() {
			return
		}
		for e, err := range s.fs.ReadDir(folder) {
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

// entries checks staging for unknown entries.
func (s *outside) entries(ctx context.Context, report func(integrity.Finding) error) error {
	for e, err := range s.entriesOf(ctx, ctxfolder.Staging) {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(e.Name()); ok {
			continue
		}
		err := report(integrity.Finding{
			Kind: integrity.KindUnknown, Severity: integrity.SeverityInfo, Path: ctxfolder.Staging + "/" + e.Name(), Detail: "unknown file",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unreferenced verifies the blobs that nothing refers to.
func (s *outside) unreferenced(ctx context.Context, report func(integrity.Finding) error) error {
	if info, err := s.fs.Lstat(blob.Folder); !s.readData || err != nil || !info.IsDir() {
		return nil //nolint:nilerr // an item in its place was reported
	}
	for sum, err := range s.payloads.Blobs.Walk(nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		why := s.payloads.Verify(sum)
		if why == nil || errors.Is(why, fs.ErrNotExist) {
			continue
		}
		if vfs.IsShortage(why) {
			return why
		}
		err := report(integrity.Finding{
			Kind: integrity.KindBlob, Severity: integrity.SeverityWarning, Path: blob.Path(sum), Repairable: errors.Is(why, blob.ErrDamaged),
			Detail: "no message refers to it: " + why.Error(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
