package index

import (
	"errors"
	"fmt"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// StoreOf returns the id of the store that a context's folder names: in its newest journal that begins whole, else in
// index.json. uuid.Nil means none. The error wraps [ctxfolder.ErrVersion] if one of its files has another version.
func StoreOf(fsys vfs.FS) (uuid.UUID, error) {
	dir := &ctxfolder.Dir{FS: fsys}
	if _, _, err := dir.ReadMetadata(); errors.Is(err, ctxfolder.ErrVersion) {
		return uuid.Nil, err
	}
	gens, err := generations(dir)
	if err != nil {
		return uuid.Nil, err
	}
	for _, gen := range slices.Backward(gens) {
		id, err := storeOfJournal(dir, gen)
		if id != uuid.Nil || errors.Is(err, ctxfolder.ErrVersion) {
			return id, err
		}
	}
	b, err := vfs.ReadFile(fsys, ctxfolder.IndexFile, maxIndex)
	if err != nil {
		return uuid.Nil, nil //nolint:nilerr // an unreadable file names no store
	}
	x, err := parseIndexFile(b)
	if errors.Is(err, ctxfolder.ErrVersion) {
		return uuid.Nil, fmt.Errorf("%s: %w", ctxfolder.IndexFile, err)
	}
	if err != nil {
		return uuid.Nil, nil
	}
	return x.Store, nil
}

func storeOfJournal(dir *ctxfolder.Dir, gen uint64) (uuid.UUID, error) {
	f, err := openRegular(dir.FS, ctxfolder.JournalFile(gen))
	if err != nil {
		return uuid.Nil, err
	}
	defer f.Close()
	size, err := vfs.Size(f)
	if err != nil {
		return uuid.Nil, err
	}
	h, body, err := (&journal{gen: gen, f: f.File}).readWhole(0, size)
	if err != nil || h.kind != KindBegin {
		return uuid.Nil, err
	}
	b, err := decodeBegin(body)
	if err != nil {
		return uuid.Nil, fmt.Errorf("%s: %w", ctxfolder.JournalFile(gen), err)
	}
	return b.Store, nil
}
