package erase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/sweep"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// readNote reads what an interrupted erase left to do.
func (e *eraser) readNote() error {
	n, err := ctxfolder.ReadErasing(e.main.c.Dir.FS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ctxfolder.ErrVersion):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", engine.ErrDamaged, err)
	}
	for _, id := range n.Messages {
		e.noted[id], e.ids[id] = true, true
	}
	for _, id := range n.Along {
		e.along[id] = uuid.Nil
	}
	for _, text := range n.Blobs {
		sum, err := blob.ParseSum(text)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", ctxfolder.ErasingFile, engine.ErrDamaged, err)
		}
		e.blobs[sum] = true
	}
	return nil
}

func (e *eraser) writeNote() error {
	byID := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
	n := ctxfolder.Erasing{
		Messages: slices.SortedFunc(maps.Keys(e.ids), byID), Along: slices.SortedFunc(maps.Keys(e.along), byID), Blobs: []string{},
	}
	for _, sum := range e.sums() {
		n.Blobs = append(n.Blobs, sum.String())
	}
	e.inNote = len(n.Blobs)
	return ctxfolder.WriteErasing(e.main.c.Dir.FS, n)
}

func (e *eraser) removeNote() error { return ctxfolder.RemoveErasing(e.main.c.Dir.FS) }

// sums returns the payloads that the messages referred to.
func (e *eraser) sums() []blob.Sum {
	return slices.SortedFunc(maps.Keys(e.blobs), func(a, b blob.Sum) int { return bytes.Compare(a[:], b[:]) })
}

// removePayloads removes the blobs that nothing refers to any more, from the store's trash too. The lock on blobs
// excludes a writer that is about to refer to one. If a message cannot be read, they stay, since it may refer to them.
//
// Crash order: the note names every blob before the first one goes, so that a second erase removes all other copies.
func (e *eraser) removePayloads(ctx context.Context) error {
	s := *e.s
	if e.o.DryRun {
		s.Exclusions = &engine.Exclusions{Context: e.id, IDs: e.ids, Paths: e.paths}
	} else {
		lock := s.FS.Lock(engine.BlobsLock)
		defer lock.Close()
		if err := s.Acquire(ctx, lock); err != nil {
			return err
		}
		defer lock.Release()
		// A staged copy of a context, not yet in its place, refers to its payloads.
		if err := ctxfolder.SweepStaging(s.FS); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	marked, err := e.addUnreferenced(ctx, &s)
	if err != nil {
		return fmt.Errorf("some payloads of erased messages may remain; repair the store and erase again: %w", err)
	}
	for _, sum := range e.sums() {
		if marked[sum] {
			continue
		}
		if err := e.removePayload(blob.Path(sum), "payload"); err != nil {
			return err
		}
		e.gone[sum] = true
		if err := e.removeTemporaries(path.Dir(blob.Path(sum))); err != nil {
			return err
		}
	}
	if err := e.removeTemporaries(blob.Folder); err != nil {
		return err
	}
	return e.removeTrashPayloads()
}

// addUnreferenced adds to the payloads of the messages all others in the store that nothing refers to: an edit by hand
// may have taken the reference out of a message, and leaves no other trace. A blob counts as one of these only if no
// file of the store mentions it, messages outside every index included. It returns the blobs that messages refer to.
func (e *eraser) addUnreferenced(ctx context.Context, s *engine.Store) (marked map[blob.Sum]bool, err error) {
	loose, err := storedBlobs(ctx, s)
	if err != nil || len(loose)+len(e.blobs) == 0 {
		return nil, err
	}
	marked, err = sweep.Mark(ctx, s)
	if err != nil && len(e.blobs) == 0 && !e.referred {
		return marked, ctx.Err() // no payload of the messages is known: damage elsewhere is not a reason to fail
	}
	maps.DeleteFunc(loose, func(sum blob.Sum, _ bool) bool { return marked[sum] || e.blobs[sum] })
	if err != nil || len(loose) == 0 {
		return marked, err
	}
	err = engine.WalkFiles(s.FS, ".", func(p string) error {
		p = path.Clean(p)
		if err := ctx.Err(); err != nil || strings.HasPrefix(p, blob.Folder+"/") {
			return err
		}
		return engine.EachMentionInFile(s.FS, p, func(sum blob.Sum) { delete(loose, sum) })
	})
	if err != nil || len(loose) == 0 {
		return marked, err
	}
	maps.Copy(e.blobs, loose)
	if e.o.DryRun {
		return marked, nil
	}
	return marked, e.writeNote()
}

// storedBlobs returns the blobs in the store, those in its trash included.
func storedBlobs(ctx context.Context, s *engine.Store) (map[blob.Sum]bool, error) {
	there := map[blob.Sum]bool{}
	for sum, err := range s.Blobs.Walk(nil) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		there[sum] = true
	}
	return there, eachTrashBlob(s, func(sum blob.Sum, _ string) { there[sum] = true })
}

// eachTrashBlob calls f for each blob in the store's trash, with its path.
func eachTrashBlob(s *engine.Store, f func(sum blob.Sum, path string)) error {
	for item, err := range s.FS.ReadDir(ctxfolder.Trash) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !item.IsDir() {
			continue
		}
		folder := ctxfolder.Trash + "/" + item.Name()
		for entry, err := range s.FS.ReadDir(folder) {
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return err
			}
			if sum, ok := blob.ParseFile(entry.Name()); ok {
				f(sum, folder+"/"+entry.Name())
			}
		}
	}
	return nil
}

// removeTemporaries removes what interrupted writers left in a folder of blobs, since it may hold the payload. The lock
// excludes active writers.
func (e *eraser) removeTemporaries(folder string) error {
	var names []string
	for entry, err := range e.s.FS.ReadDir(folder) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	for _, name := range names {
		if err := e.removePayload(folder+"/"+name, "temporary file"); err != nil {
			return err
		}
	}
	return nil
}

// removeTrashPayloads removes the copies of removed blobs from the store's trash.
func (e *eraser) removeTrashPayloads() error {
	var paths []string
	err := eachTrashBlob(e.s, func(sum blob.Sum, path string) {
		if e.gone[sum] {
			paths = append(paths, path)
		}
	})
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := e.removePayload(p, "payload in the trash"); err != nil {
			return err
		}
	}
	return nil
}

func (e *eraser) removePayload(p, what string) error {
	info, err := e.s.FS.Lstat(p)
	if vfs.IsFault(err) {
		return err
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil // it is not there
	}
	e.report(uuid.Nil, p, info.Size(), what)
	if e.o.DryRun {
		return nil
	}
	return clearOne(e.s.FS, p)
}
