package integrity

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// Store is what of a store belongs to no single context: the folders themselves, locks, staging and blobs.
type Store struct {
	FS       vfs.FS
	Payloads *Payloads
	ReadData bool // read every blob
	// Alone runs f while nobody writes to a context.
	Alone func(ctx context.Context, id uuid.UUID, f func() error) error
}

// Check yields what is wrong with the store.
func (s *Store) Check(ctx context.Context, yield func(Finding) bool) error {
	for _, look := range []func(context.Context, func(Finding) error) error{s.names, s.folders, s.entries, s.unreferred} {
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

// Repair moves to trash what lies where a folder of the store or a lock belongs and is none, and yields what it did. It
// comes before the contexts are mended, which need both. left is how many things stay wrong.
//
// Crash order: each is one rename, into an item in trash that is there already.
func (s *Store) Repair(ctx context.Context, dryRun bool, yield func(Repaired) bool) (left int, err error) {
	return s.mend(ctx, s.folders, dryRun, yield, func(f Finding) (bool, error) { return true, s.setAside(f.Path) })
}

// RepairBlobs moves damaged blobs to trash that nothing was found to refer to, as after a power cut that took a message and left
// a part of its blob. It comes after all contexts of the store were mended. A writer trusts no blob that he has not read, so he misses
// none of them; nobody puts a whole one in its place between the second look at it and the rename.
//
// Crash order: as with Repair.
func (s *Store) RepairBlobs(ctx context.Context, dryRun bool, yield func(Repaired) bool) (left int, err error) {
	s.ReadData = true
	return s.mend(ctx, s.unreferred, dryRun, yield, func(f Finding) (done bool, err error) {
		err = s.Payloads.Alone(ctx, func() error {
			sum, _ := blob.ParseFile(path.Base(f.Path))
			if done = errors.Is(s.Payloads.Blobs.Verify(sum), blob.ErrDamaged); !done {
				return nil // it was put there again, or swept
			}
			return s.setAside(f.Path)
		})
		return done, err
	})
}

// mend moves to trash what look finds wrong.
func (s *Store) mend(
	ctx context.Context, look func(context.Context, func(Finding) error) error, dryRun bool, yield func(Repaired) bool, setAside func(Finding) (bool, error),
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
		done, r := true, Repaired{Kind: f.Kind, Path: f.Path, Detail: f.Detail + "; would be moved to the trash"}
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

// folders looks at what should be a folder, or a lock, and is none.
func (s *Store) folders(ctx context.Context, tell func(Finding) error) error {
	for _, name := range []string{ctxfolder.Trash, ctxfolder.Staging, ctxfolder.Locks} {
		if err := s.folder(name, false, tell); err != nil {
			return err
		}
	}
	for e, err := range s.entriesOf(ctx, ".") {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(e.Name()); ok && !e.IsDir() {
			err := tell(Finding{
				Kind: KindContext, Severity: SeverityError, Path: e.Name(), Detail: "where a context's folder belongs lies " + what(e.Type()),
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
			err := tell(Finding{
				Kind: KindLock, Severity: SeverityError, Path: ctxfolder.Locks + "/" + e.Name(), Repairable: true,
				Detail: "where a lock belongs lies " + what(e.Type()),
			})
			if err != nil {
				return err
			}
		}
	}
	return s.blobFolders(ctx, blob.Folder, 0, tell)
}

// blobFolders looks at a folder of blobs, and at those in it.
func (s *Store) blobFolders(ctx context.Context, folder string, depth int, tell func(Finding) error) error {
	if err := s.folder(folder, true, tell); err != nil || depth == 2 {
		return err
	}
	for e, err := range s.entriesOf(ctx, folder) {
		if err == nil && len(e.Name()) == 2 && strings.Trim(e.Name(), "0123456789abcdef") == "" {
			err = s.blobFolders(ctx, folder+"/"+e.Name(), depth+1, tell)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folder tells when something else lies where a folder belongs.
func (s *Store) folder(path string, repairable bool, tell func(Finding) error) error {
	info, err := s.FS.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	return tell(Finding{
		Kind: KindFolder, Severity: SeverityError, Path: path, Repairable: repairable, Detail: "where a folder belongs lies " + what(info.Mode().Type()),
	})
}

// entriesOf yields what is in a folder, nothing where there is none.
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
	return "something else than a file or folder"
}

// entries looks at what lies in staging.
func (s *Store) entries(ctx context.Context, tell func(Finding) error) error {
	for e, err := range s.entriesOf(ctx, ctxfolder.Staging) {
		if err != nil {
			return err
		}
		if _, ok := ctxfolder.ParseID(e.Name()); ok {
			continue
		}
		err := tell(Finding{Kind: KindStray, Severity: SeverityInfo, Path: ctxfolder.Staging + "/" + e.Name(), Detail: "nothing of ours"})
		if err != nil {
			return err
		}
	}
	return nil
}

// unreferred reads the blobs that nothing was found to refer to.
func (s *Store) unreferred(ctx context.Context, tell func(Finding) error) error {
	if info, err := s.FS.Lstat(blob.Folder); !s.ReadData || err != nil || !info.IsDir() {
		return nil //nolint:nilerr // what lies in its place was told
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
		err := tell(Finding{
			Kind: KindBlob, Severity: SeverityWarning, Path: blob.Path(sum), Repairable: errors.Is(why, blob.ErrDamaged),
			Detail: "no message refers to it: " + why.Error(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
