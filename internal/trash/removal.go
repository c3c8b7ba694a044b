package trash

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
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

// resume takes over what an interrupted purge left to do in a context's folder. An interrupted erase is left alone: it has to
// be repeated. Its note can have the lines of a purge that came after it.
func (x *removal) resume(fsys vfs.FS, id uuid.UUID) error {
	n, err := ctxfolder.ReadErasing(fsys)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(n.Messages) > 0 && len(n.Cut) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	r := x.in(id)
	r.due, r.cut, r.versions, r.metadata = true, n.Cut, true, true
	x.lost[id] = true
	x.referAll(n)
	return nil
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

func (x *removal) referAll(n *ctxfolder.Erasing) {
	for _, text := range n.Blobs {
		if sum, err := blob.ParseSum(text); err == nil {
			x.refer(sum)
		}
	}
}
