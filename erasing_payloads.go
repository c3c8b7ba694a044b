package ctxdir

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

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// readNote takes in what an erase that was interrupted left to do.
func (e *erasing) readNote() error {
	n, err := ctxfolder.ReadErasing(e.main.c.dir.FS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ctxfolder.ErrVersion):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, id := range n.Messages {
		e.noted[id], e.ids[id] = true, true
	}
	for _, text := range n.Blobs {
		sum, err := blob.ParseSum(text)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", ctxfolder.ErasingFile, ErrDamaged, err)
		}
		e.blobs[sum] = true
	}
	return nil
}

func (e *erasing) writeNote() error {
	n := ctxfolder.Erasing{
		Messages: slices.SortedFunc(maps.Keys(e.ids), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }), Blobs: []string{},
	}
	for _, sum := range e.sums() {
		n.Blobs = append(n.Blobs, sum.String())
	}
	return ctxfolder.WriteErasing(e.main.c.dir.FS, n)
}

func (e *erasing) removeNote() error {
	fsys := e.main.c.dir.FS
	if err := fsys.Remove(ctxfolder.ErasingFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(".")
}

// sums returns the payloads that the messages referred to.
func (e *erasing) sums() []blob.Sum {
	return slices.SortedFunc(maps.Keys(e.blobs), func(a, b blob.Sum) int { return bytes.Compare(a[:], b[:]) })
}

// payloads removes the blobs that nothing refers to any more, also from the store's trash. The lock on blobs keeps everybody
// away who is about to refer to one. Where some message cannot be read they stay: it may refer to them.
func (e *erasing) payloads(ctx context.Context) error {
	if len(e.blobs) == 0 {
		return nil
	}
	s := *e.s
	if e.o.DryRun {
		s.besides = &besides{context: e.id, ids: e.ids, paths: e.paths}
	} else {
		lock := s.fs.Lock(blobsLock)
		defer lock.Close()
		if err := s.acquire(ctx, lock); err != nil {
			return err
		}
		defer lock.Release()
	}
	marked, err := s.mark(ctx)
	if err != nil {
		return fmt.Errorf("the payloads of the message are still there: %w", err)
	}
	for _, sum := range e.sums() {
		if marked[sum] {
			continue
		}
		if err := e.payload(blob.Path(sum), "payload"); err != nil {
			return err
		}
		e.gone[sum] = true
		if err := e.temporaries(path.Dir(blob.Path(sum))); err != nil {
			return err
		}
	}
	if err := e.temporaries(blob.Folder); err != nil {
		return err
	}
	return e.trashedPayloads()
}

// temporaries removes what interrupted writers left in a folder of blobs: it may hold the payload. None is at work, since the
// lock is held.
func (e *erasing) temporaries(folder string) error {
	var names []string
	for entry, err := range e.s.fs.ReadDir(folder) {
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
		if err := e.payload(folder+"/"+name, "temporary file"); err != nil {
			return err
		}
	}
	return nil
}

// trashedPayloads removes the copies that a sweep moved to trash.
func (e *erasing) trashedPayloads() error {
	var paths []string
	for entry, err := range e.s.fs.ReadDir(ctxfolder.Trash) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		for sum := range e.gone {
			if !entry.IsDir() {
				continue
			}
			paths = append(paths, ctxfolder.Trash+"/"+entry.Name()+"/"+path.Base(blob.Path(sum)))
		}
	}
	for _, p := range paths {
		if err := e.payload(p, "payload in the trash"); err != nil {
			return err
		}
	}
	return nil
}

func (e *erasing) payload(p, what string) error {
	info, err := e.s.fs.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it is not there
	}
	e.tell(uuid.Nil, p, info.Size(), what)
	if e.o.DryRun {
		return nil
	}
	return clearOne(e.s.fs, p)
}

// besides is what a dry run of an erase takes to be gone.
type besides struct {
	context uuid.UUID
	ids     map[uuid.UUID]bool
	paths   map[string]bool // relative to the context's folder
}

// message reports whether a message counts as gone.
func (b *besides) message(context, id uuid.UUID) bool {
	return b != nil && b.context == context && b.ids[id]
}

// file reports whether a file counts as gone.
func (b *besides) file(context uuid.UUID, path string) bool {
	return b != nil && b.context == context && b.paths[path]
}
