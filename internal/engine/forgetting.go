package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// forgettingFile is in [DerivedFolder] while messages are removed for good. If the process that made it is gone, files
// of the folder may repeat what the store has lost.
const forgettingFile = DerivedFolder + "/forgetting"

// BeginForgetting notes that messages of contexts are about to be lost for good, until [Store.EndForgetting]. If the
// process ends in between, the next one removes [DerivedFolder]: see [Store.FinishForgetting]. The caller holds
// [CollectionLock].
//
// Crash order: the note is durable before the first removal.
func (s *Store) BeginForgetting(contexts ...uuid.UUID) error {
	s.derived.lose(contexts)
	if s.derived.noted.Load() {
		return nil
	}
	f, err := s.FS.OpenFile(forgettingFile, os.O_CREATE|os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no folder
	}
	if err == nil {
		if err = errors.Join(f.Close(), s.FS.SyncDir(DerivedFolder)); err == nil {
			s.derived.noted.Store(true)
			return nil
		}
	}
	return s.removeDerived() // the disk may be full
}

// EndForgetting removes contexts from [DerivedFolder], those given to [Store.BeginForgetting] included, even if their
// removal failed halfway. Then it removes the note.
func (s *Store) EndForgetting(ctx context.Context, contexts ...uuid.UUID) error {
	if contexts = s.derived.losses(contexts); len(contexts) > 0 {
		if err := s.ForgetDerived(ctx, contexts...); err != nil {
			return err
		}
	}
	if !s.derived.noted.Swap(false) {
		return nil
	}
	err := s.FS.Remove(forgettingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// FinishForgetting removes [DerivedFolder] if a process ended while it removed messages for good. It returns at once if
// a removal is running.
func (s *Store) FinishForgetting() error {
	if s.ReadOnly || !s.IsForgetting() {
		return nil
	}
	lock := s.FS.Lock(CollectionLock)
	defer lock.Close()
	if ok, err := lock.TryAcquire(); !ok || err != nil {
		return err
	}
	defer lock.Release()
	if !s.IsForgetting() {
		return nil
	}
	return s.removeDerived()
}

// IsForgetting reports whether messages are removed for good, or such a removal was interrupted.
func (s *Store) IsForgetting() bool {
	_, err := s.FS.Lstat(forgettingFile)
	return err == nil
}

// removeDerived removes [DerivedFolder], the note last.
func (s *Store) removeDerived() error {
	for e, err := range s.FS.ReadDir(DerivedFolder) {
		if err != nil {
			break // no folder
		}
		if e.Name() == path.Base(forgettingFile) {
			continue
		}
		if err := vfs.RemoveAll(s.FS, DerivedFolder+"/"+e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.derived.noted.Store(false)
	err := vfs.RemoveAll(s.FS, DerivedFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.FS.SyncDir(".")
	}
	return err
}
