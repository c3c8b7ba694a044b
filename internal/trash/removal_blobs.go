package trash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/sweep"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// removeBlobs removes the payloads of what was removed, from blobs/ and the store's trash, unless something still refers
// to them. If a message cannot be read, all stay, since it may refer to any of them. left reports that a writer used one
// meanwhile, which stays, too. marks, which may be nil, is what a sweep found before.
func (x *removal) removeBlobs(ctx context.Context, marks *sweep.Marker) (gone []engine.TrashItem, left bool, err error) {
	if len(x.blobs) == 0 {
		return nil, false, nil
	}
	copies, err := blobsInTrash(x.s)
	if err == nil {
		err = x.clearBlobTemporaries(ctx)
	}
	if err != nil {
		return nil, false, err
	}
	var there []blob.Sum
	for _, sum := range slices.SortedFunc(maps.Keys(x.blobs), func(a, b blob.Sum) int { return bytes.Compare(a[:], b[:]) }) {
		if marks != nil && marks.Marked[sum] {
			continue
		}
		// One that cannot be looked at may be there.
		if _, err := x.s.FS.Lstat(blob.Path(sum)); !errors.Is(err, fs.ErrNotExist) || len(copies[sum]) > 0 {
			there = append(there, sum)
		}
	}
	if len(there) == 0 {
		return nil, false, nil
	}
	m, err := sweep.Start(ctx, x.s, false) // the marks of the sweep are older than what a seal has written
	if err == nil {
		err = cmp.Or(m.MarkAll(ctx), m.Unread)
	}
	if err != nil {
		return nil, false, fmt.Errorf("some payloads of purged messages may remain; repair the store and collect again: %w", err)
	}
	w := sweep.Sweeper{Store: x.s, Before: m.At, Purge: true, Yield: func(t engine.TrashItem) bool { gone = append(gone, t); return true }}
	for some := range slices.Chunk(there, sweep.Batch) {
		w.Found = slices.DeleteFunc(slices.Clone(some), func(sum blob.Sum) bool { return m.Marked[sum] })
		if _, err := m.Flush(ctx, &w); err != nil {
			return gone, false, err
		}
	}
	for _, sum := range there {
		if m.Marked[sum] {
			continue
		}
		_, err := x.s.FS.Lstat(blob.Path(sum))
		left = left || !errors.Is(err, fs.ErrNotExist)
		for _, p := range copies[sum] {
			if err := removeFromItem(x.s.FS, p); err != nil {
				return gone, false, err
			}
		}
	}
	return gone, left, nil
}

// clearBlobTemporaries removes what interrupted writers left beside the payloads: it may hold one of them. The lock
// excludes writers.
func (x *removal) clearBlobTemporaries(ctx context.Context) error {
	lock := x.s.FS.Lock(engine.BlobsLock)
	defer lock.Close()
	if err := x.s.Acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	folders := map[string]bool{blob.Folder: true}
	for sum := range x.blobs {
		folders[path.Dir(blob.Path(sum))] = true
	}
	for folder := range folders {
		err := clearNames(x.s.FS, folder, func(name string) bool { return strings.HasPrefix(name, ".") })
		if err != nil {
			return err
		}
	}
	return nil
}

// blobsInTrash returns the paths of the blobs in the store's trash.
func blobsInTrash(s *engine.Store) (map[blob.Sum][]string, error) {
	paths := map[blob.Sum][]string{}
	entries, err := ctxfolder.ListTrash(s.FS)
	if err != nil {
		return nil, err
	}
	for _, item := range entries {
		if !item.IsDir() {
			continue
		}
		folder := ctxfolder.Trash + "/" + item.Name()
		for e, err := range s.FS.ReadDir(folder) {
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return nil, err
			}
			if sum, ok := blob.ParseFile(e.Name()); ok && e.Type().IsRegular() {
				paths[sum] = append(paths[sum], folder+"/"+e.Name())
			}
		}
	}
	return paths, nil
}

// removeFromItem removes a file from an item of a trash, durably, and the item if it has nothing else.
func removeFromItem(fsys vfs.FS, p string) error {
	item := path.Dir(p)
	if err := fsys.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for e, err := range fsys.ReadDir(item) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Name() != ctxfolder.TrashNote {
			return fsys.SyncDir(item)
		}
	}
	if err := vfs.RemoveAll(fsys, item); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(item))
}

// eachMentionInRecords calls f for each blob that a log, metadata.json, or a record in a segment that is not a message
// mentions: what a removed branch had as its system prompt is in an earlier record at most.
func eachMentionInRecords(fsys vfs.FS, f func(blob.Sum)) error {
	names := []string{ctxfolder.MetadataFile}
	for e, err := range fsys.ReadDir(".") {
		if err != nil {
			return err
		}
		if _, ok := journal.ParseName(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := engine.EachMentionInFile(fsys, name, f); err != nil {
			return err
		}
	}
	segments := vfs.Below(fsys, ctxfolder.Segments)
	for e, err := range segments.ReadDir(".") {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, ok := archive.ParseName(e.Name()); ok {
			if err := eachMentionInOthers(segments, e.Name(), f); err != nil {
				return err
			}
		}
	}
	return nil
}

func eachMentionInOthers(segments vfs.FS, name string, f func(blob.Sum)) error {
	s, err := archive.Open(segments, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	for o, err := range s.Others(0) {
		if err != nil {
			return err
		}
		engine.EachMention(o.Body, f)
	}
	return nil
}

// referUnused notes the blobs that the records of a context mention and to which the context does not refer any more. The
// records are about to go, and nothing would lead to these blobs afterwards but a sweep.
func (x *removal) referUnused(ctx context.Context, c *engine.Context) error {
	unused := map[blob.Sum]bool{}
	if err := eachMentionInRecords(c.Dir.FS, func(sum blob.Sum) { unused[sum] = true }); err != nil || len(unused) == 0 {
		return err
	}
	unread, err := c.References(ctx, true, func(sum blob.Sum) { delete(unused, sum) })
	if err != nil || unread != nil || len(unused) == 0 {
		return err // of an unread message they may be payloads
	}
	return x.begin(c.Dir.FS, c.Dir.ID, unused)
}

// eachReference calls f for each blob to which a context in an item of the store's trash refers. Where the context
// cannot be read, each mention in its files counts.
func (x *removal) eachReference(ctx context.Context, item vfs.FS, id uuid.UUID, f func(blob.Sum)) error {
	in := x.s.In(item)
	in.ReadOnly = true
	c, err := in.Open(ctx, id)
	if err == nil {
		unread, uerr := c.ReferencesBeyond(ctx, nil, f)
		entries, terr := ctxfolder.ListTrash(c.Dir.FS)
		err = errors.Join(uerr, unread, terr, c.ReferencesInTrash(entries, f), eachMentionInRecords(c.Dir.FS, f), c.Close())
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	// Unreadable files are no reason to keep the item: a sweep finds the payloads of these.
	_ = engine.WalkFiles(item, ".", func(p string) error { return engine.EachMentionInFile(item, p, f) })
	return ctx.Err()
}
