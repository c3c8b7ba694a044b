package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// FinishPurge does what an interrupted purge left to do in a context, but for payloads: the note names these. It is for an
// erase, which writes a note of its own. The caller holds [engine.CollectionLock].
func FinishPurge(ctx context.Context, s *engine.Store, c *engine.Context) error {
	x := newRemoval(s)
	err := x.resume(c.Dir.FS, c.Dir.ID)
	switch {
	case err == nil:
		_, err = x.end(ctx, c)
	case !vfs.IsFault(err) && !errors.Is(err, ctxfolder.ErrVersion):
		err = fmt.Errorf("%w: %w", engine.ErrDamaged, err)
	}
	return err
}

// resumeAll is resume for every context, and for the store's trash. It yields what fails: without a context for what
// ends the call.
func (x *removal) resumeAll() iter.Seq2[engine.TrashItem, error] {
	return func(yield func(engine.TrashItem, error) bool) {
		fail := func(err error) {
			yield(engine.TrashItem{}, engine.Wrap(engine.Error{Op: "empty the trash of", Path: x.s.Path()}, err))
		}
		entries, err := ctxfolder.ListTrash(x.s.FS)
		if err == nil {
			_, err = x.resumeTrash(entries)
		}
		if err != nil {
			fail(err)
			return
		}
		for id, err := range x.s.IDs() {
			if err != nil {
				fail(err)
				return
			}
			fsys, err := x.s.FS.Sub(id.String())
			if err == nil {
				err = x.resume(fsys, id)
				_ = fsys.Close()
			}
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if !yield(engine.TrashItem{Context: id}, engine.Wrap(engine.Error{Op: "purge in", Context: id}, err)) {
				return
			}
		}
	}
}

// resumeTrash takes over what interrupted purges left in the store's trash. It returns the other entries.
func (x *removal) resumeTrash(entries []fs.DirEntry) (others []fs.DirEntry, err error) {
	for _, e := range entries {
		rest := ctxfolder.Trash + "/" + e.Name()
		there := false
		if strings.HasPrefix(e.Name(), ".") && e.IsDir() {
			if there, err = x.resumeItem(rest); err != nil {
				return nil, err
			}
		}
		if !there {
			others = append(others, e)
			continue
		}
		if err := ctxfolder.RemoveAllBut(x.s.FS, rest, ctxfolder.ErasingFile); err != nil {
			return nil, err
		}
		x.rests = append(x.rests, rest)
	}
	return others, nil
}

func (x *removal) resumeItem(rest string) (there bool, err error) {
	item, err := x.s.FS.Sub(rest)
	if err == nil {
		defer item.Close()
		n, rerr := ctxfolder.ReadErasing(item)
		if err = rerr; err == nil {
			x.referAll(n)
			return true, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return false, err
}
