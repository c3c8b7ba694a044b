package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/google/uuid"
)

// BeginErasure notes that messages of contexts are about to be lost for good, until [Store.EndErasure]. If the
// process ends in between, the next one removes [DerivedFolder]: see [Store.FinishErasure]. The caller holds
// [CollectionLock].
//
// Crash order: the note is durable before the first removal.
func (s *Store) BeginErasure(contexts ...uuid.UUID) error {
	s.derived.lose(contexts)
	if s.derived.noted.Load() {
		return nil
	}
	f, err := s.FS.OpenFile(erasureFile, os.O_CREATE|os.O_WRONLY)
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

// EndErasure removes contexts from [DerivedFolder], those given to [Store.BeginErasure] included, even if their
// removal failed halfway. Then it removes the note.
func (s *Store) EndErasure(ctx context.Context, contexts ...uuid.UUID) error {
	if contexts = s.derived.losses(contexts); len(contexts) > 0 {
		if err := s.ForgetDerived(ctx, contexts...); err != nil {
			return err
		}
	}
	if !s.derived.noted.Swap(false) {
		return nil
	}
	err := s.FS.Remove(erasureFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// FinishErasure removes [DerivedFolder] if a process ended while it removed messages for good. It returns at once if
// a removal is running.
func (s *Store) FinishErasure() error {
	if s.ReadOnly || !s.IsErasing() {
		return nil
	}
	lock := s.FS.Lock(CollectionLock)
	defer lock.Close()
	if ok, err := lock.TryAcquire(); !ok || err != nil {
		return err
	}
	defer lock.Release()
	if !s.IsErasing() {
		return nil
	}
	return s.removeDerived()
}

// IsErasing reports whether messages are removed for good, or such a removal was interrupted.
func (s *Store) IsErasing() bool {
	_, err := s.FS.Lstat(erasureFile)
	return err == nil
}

// OnCut sets the function that erases what was made from messages of a context: see [Store.BeforeCut].
func (s *Store) OnCut(f func(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error) {
	s.cut.f.Store(&f)
}

// BeforeCut erases what was made from messages of a context, before a purge removes them. The caller holds
// [CollectionLock], and no lock of the context.
func (s *Store) BeforeCut(ctx context.Context, c uuid.UUID, messages []uuid.UUID) error {
	if f := s.cut.f.Load(); f != nil && len(messages) > 0 {
		return (*f)(ctx, c, messages)
	}
	return nil
}
