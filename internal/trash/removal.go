package trash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/sweep"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// removal is what a purge or a collection removes for good. The logs and segments of a context repeat what its trash and
// its removed lines held, so these are rewritten, once in each context. Payloads to which nothing refers any more go
// last.
//
// Crash order: erasing.json in the context's folder is durable before the first removal, and names the payloads, and the
// lines that end earlier. It goes when the payloads are gone. The next purge or collection that finds it does what is
// left, which harms nothing that is done already.
type removal struct {
	s        *engine.Store
	contexts map[uuid.UUID]*reduced
	blobs    map[blob.Sum]bool // to which something that is removed referred
	lost     map[uuid.UUID]bool
	trashes  map[uuid.UUID]bool  // contexts from whose trash something was removed; uuid.Nil for the store's
	begun    map[uuid.UUID]error // by Purge, for the trash of contexts
	rests    []string            // items of the store's trash of which only erasing.json is left
}

// reduced is a context that loses messages, or versions of them.
type reduced struct {
	left      bool // an item in the trash could not be removed
	due       bool // its files may hold what is removed
	ended     bool // they do not any more
	cut       []ctxfolder.CutLine
	versions  bool  // its segments may have replaced versions of messages
	metadata  bool  // its segments may have the names of what is removed
	unrefined error // why its files still hold something
}

func newRemoval(s *engine.Store) *removal {
	return &removal{
		s: s, contexts: map[uuid.UUID]*reduced{}, blobs: map[blob.Sum]bool{}, lost: map[uuid.UUID]bool{}, trashes: map[uuid.UUID]bool{},
		begun: map[uuid.UUID]error{},
	}
}

func (x *removal) in(id uuid.UUID) *reduced {
	if x.contexts[id] == nil {
		x.contexts[id] = &reduced{}
	}
	return x.contexts[id]
}

// lose notes that a context lost something for good.
func (x *removal) lose(t engine.TrashItem) {
	if t.Context != uuid.Nil {
		x.lost[t.Context] = true
	}
}

func (x *removal) refer(sum blob.Sum) { x.blobs[sum] = true }

// begin writes erasing.json before something is removed from a context that referred to some payloads. It takes over what an
// interrupted purge left there: the end of this one removes the note of both.
func (x *removal) begin(fsys vfs.FS, id uuid.UUID, sums map[blob.Sum]bool, cut ...ctxfolder.CutLine) error {
	if err := x.s.BeginErasure(id); err != nil {
		return err
	}
	r := x.in(id)
	if !r.due {
		if err := x.resume(fsys, id); err != nil {
			return err
		}
	}
	r.due, r.cut = true, append(r.cut, cut...)
	maps.Copy(x.blobs, sums)
	n, err := ctxfolder.ReadErasing(fsys)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	more := err != nil
	if n == nil {
		n = &ctxfolder.Erasing{}
	}
	known := map[string]bool{}
	for _, text := range n.Blobs {
		known[text] = true
	}
	for sum := range sums {
		more = more || !known[sum.String()]
		known[sum.String()] = true
	}
	for _, l := range cut {
		if !slices.Contains(n.Cut, l) {
			n.Cut, more = append(n.Cut, l), true
		}
	}
	if !more {
		return nil
	}
	n.Blobs = slices.Sorted(maps.Keys(known))
	return ctxfolder.WriteErasing(fsys, *n)
}

// beginItems is begin for the items of a context's trash that are about to be purged; may says by its name whether an
// item can be one of these, nil for all. Only replaced versions are still in logs and segments.
func (x *removal) beginItems(
	fsys vfs.FS, id uuid.UUID, entries []fs.DirEntry, may func(uuid.UUID, bool) bool, goes func(t *ctxfolder.TrashEntry) bool,
) error {
	sums, some := map[blob.Sum]bool{}, false
	for t := range ctxfolder.Items(fsys, entries, may) {
		if !goes(t) || t.Problem == nil && (t.Item.Kind == ctxfolder.TrashDamaged || t.Item.Kind == ctxfolder.TrashTail) {
			continue
		}
		some = true
		err := eachFileOf(fsys, t.Path, func(p string) error {
			return engine.EachMentionInFile(fsys, p, func(sum blob.Sum) { sums[sum] = true })
		})
		if vfs.IsFault(err) {
			return err // any other file is not a reason to keep the item: a sweep finds the payloads
		}
	}
	if !some {
		return nil
	}
	x.in(id).versions = true
	return x.begin(fsys, id, sums)
}

// eachFileOf calls f for a file, or for each file below a folder.
func eachFileOf(fsys vfs.FS, p string, f func(p string) error) error {
	info, err := fsys.Lstat(p)
	if err != nil || !info.IsDir() {
		if err == nil && info.Mode().IsRegular() {
			err = f(p)
		}
		return err
	}
	return engine.WalkFiles(fsys, p, f)
}

// purgeContext purges a context in the store's trash.
//
// Crash order: the summaries lose the context first. erasing.json in the item names the payloads and is durable before
// the item is removed. It goes when the payloads are gone. If it cannot be written, since the disk is full, a sweep finds
// the payloads.
func (x *removal) purgeContext(ctx context.Context, t *ctxfolder.TrashEntry) error {
	if !x.trashes[uuid.Nil] { // once
		if err := listing.Forget(x.s); err != nil {
			return err
		}
	}
	x.trashes[uuid.Nil] = true
	item, err := x.s.FS.Sub(t.Path)
	if err != nil {
		return err
	}
	n := ctxfolder.Erasing{}
	err = x.eachReference(ctx, item, t.Item.Context, func(sum blob.Sum) {
		x.refer(sum)
		n.Blobs = append(n.Blobs, sum.String())
	})
	noted := false
	if err == nil && len(n.Blobs) > 0 {
		noted = ctxfolder.WriteErasing(item, n) == nil
	}
	if err = errors.Join(err, item.Close()); err != nil {
		return err
	}
	if !noted {
		return t.Purge()
	}
	rest, err := t.PurgeBut(ctxfolder.ErasingFile)
	if err == nil {
		x.rests = append(x.rests, rest) // else the next purge takes over what is left, with the note
	}
	return err
}

func (x *removal) referAll(n *ctxfolder.Erasing) {
	for _, text := range n.Blobs {
		if sum, err := blob.ParseSum(text); err == nil {
			x.refer(sum)
		}
	}
}

// end removes from the files of a context what it lost. done reports that it did.
//
// Crash order: readers do without all of it since the commit. The files of messages go first, since nothing makes them
// again; see [engine.Context.Scrub] for the others.
func (x *removal) end(ctx context.Context, c *engine.Context) (done bool, err error) {
	r := x.contexts[c.Dir.ID]
	if r == nil || !r.due {
		return false, nil
	}
	if err = x.referUnused(ctx, c); err == nil { // before the records go
		// As before every commit: a torn metadata.json may have a name that is removed.
		err = c.Write(ctx, func(*engine.Metadata) error { return c.AwaitFiles(ctx) })
	}
	for _, l := range r.cut {
		if err == nil {
			err = removeViews(c, l)
		}
	}
	if err == nil {
		err = c.Scrub(ctx, r.versions, r.metadata)
	}
	if err == nil {
		err = c.Exclusively(ctx, func() error { return clearFolder(c, r.cut) })
	}
	if err == nil {
		err = forgetCut(c.Dir.FS)
	}
	x.s.Forget(c.Dir.ID) // an open log would keep what was removed
	if err != nil {
		r.unrefined = fmt.Errorf("purged data may remain in its files; the next collection tries again: %w", err)
		return false, r.unrefined
	}
	r.due, r.ended = false, true
	return true, nil
}

// forgetCut removes the lines from the note, which may stay while payloads do: it has names of branches.
func forgetCut(fsys vfs.FS) error {
	n, err := ctxfolder.ReadErasing(fsys)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an erase removed it
	}
	if err != nil || len(n.Cut) == 0 {
		return err
	}
	n.Cut = nil
	return ctxfolder.WriteErasing(fsys, *n)
}

// finish removes the payloads and then the notes. marks, which may be nil, is what a sweep found before. It returns the
// blobs that it removed.
func (x *removal) finish(ctx context.Context, marks *sweep.Marker) ([]engine.TrashItem, error) {
	if err := x.clean(); err != nil {
		return nil, err
	}
	gone, left, err := x.removeBlobs(ctx, marks)
	if err != nil || left {
		return gone, err
	}
	for _, rest := range x.rests {
		if err := vfs.RemoveAll(x.s.FS, rest); err != nil {
			return gone, err
		}
	}
	if len(x.rests) > 0 {
		if err := x.s.FS.SyncDir(ctxfolder.Trash); err != nil {
			return gone, err
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(x.contexts), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		if r := x.contexts[id]; r.due || r.left || r.unrefined != nil {
			continue
		}
		if err := x.removeNote(id); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// endAll is end for the contexts that were not opened yet, those included in which a purge was interrupted. It yields
// what fails.
func (x *removal) endAll(ctx context.Context) iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for id, r := range x.contexts {
			if !r.due || r.unrefined != nil {
				continue
			}
			err := withContext(ctx, x.s, id, func(c *engine.Context) error {
				_, err := x.end(ctx, c)
				return err
			})
			if err != nil && !errors.Is(err, ctxfolder.ErrNotExist) && !yield(id, err) {
				return
			}
		}
	}
}

// ended returns the contexts whose files were rewritten.
func (x *removal) ended() (ids []uuid.UUID) {
	for id, r := range x.contexts {
		if r.ended {
			ids = append(ids, id)
		}
	}
	return ids
}

func (x *removal) removeNote(id uuid.UUID) error {
	fsys, err := x.s.FS.Sub(id.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the context was removed meanwhile
	}
	if err != nil {
		return err
	}
	defer fsys.Close()
	n, err := ctxfolder.ReadErasing(fsys)
	if err != nil || len(n.Messages) > 0 {
		return nil //nolint:nilerr // there is none, or an erase has to be repeated
	}
	return ctxfolder.RemoveErasing(fsys)
}

// forget removes what was purged from the folder of derived data, whatever error ended the purge.
func (x *removal) forget(ctx context.Context, err error) error {
	return errors.Join(err, x.s.EndErasure(context.WithoutCancel(ctx), slices.Collect(maps.Keys(x.lost))...))
}

// clean makes the removals in trash folders durable, and removes the contexts that lost something from the summaries.
func (x *removal) clean() error {
	for id := range x.trashes {
		if err := x.s.FS.SyncDir(Path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(x.lost) == 0 {
		return nil
	}
	return listing.Forget(x.s, slices.Collect(maps.Keys(x.lost))...)
}
