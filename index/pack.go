package index

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/held"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// openPack is a pack that is open for reading.
type openPack struct {
	held.Use
	folder vfs.FS
	id     uuid.UUID

	mu       sync.Mutex
	pack     *archive.Pack
	salvaged bool            // its tables were rebuilt
	before   []*archive.Pack // what it was before, which readers may still use
}

// openPack returns a pack, which the caller releases. If the pack is missing or unreadable, the error wraps ErrDamaged.
func (s *state) openPack(id uuid.UUID) (*openPack, error) {
	return s.packs.Get(id, func() (*openPack, error) { return openOne(s.dir.FS, id) })
}

// openPack returns a pack for use without holding the state: decoding takes long.
func (l *Log) openPack(id uuid.UUID) (p *openPack, err error) {
	if verr := l.view(func(s *state) { p, err = s.openPack(id) }); verr != nil {
		return nil, verr
	}
	return p, err
}

func openOne(fsys vfs.FS, id uuid.UUID) (*openPack, error) {
	folder, err := fsys.Sub(ctxfolder.Archive)
	if err != nil {
		return nil, noPack(fsys, id, err)
	}
	p := &openPack{folder: folder, id: id}
	p.pack, err = archive.Open(folder, archive.FileName(id))
	if errors.Is(err, archive.ErrDamaged) {
		p.pack, err = archive.Salvage(folder, archive.FileName(id))
		p.salvaged = true
	}
	if err != nil {
		_ = folder.Close()
		return nil, noPack(fsys, id, err)
	}
	return p, nil
}

// noPack returns the error for an unavailable pack. It wraps ErrDamaged if the cause is damage.
func noPack(fsys vfs.FS, id uuid.UUID, err error) error {
	info, serr := fsys.Lstat(ctxfolder.Archive + "/" + archive.FileName(id))
	switch {
	case errors.Is(err, archive.ErrVersion):
		err = fmt.Errorf("%w: %w", ctxfolder.ErrVersion, err)
	case vfs.IsShortage(err) || vfs.IsShortage(serr):
	case errors.Is(err, archive.ErrDamaged) || errors.Is(err, fs.ErrNotExist) || serr != nil || !info.Mode().IsRegular():
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("pack %s: %w", id, err)
}

// CheckPack returns the error of opening a pack, nil if it opens.
func (l *Log) CheckPack(id uuid.UUID) error {
	p, err := l.openPack(id)
	if err == nil {
		p.Release()
	}
	return err
}

// Close closes the files. The last user's Release calls it.
func (p *openPack) Close() error {
	for _, q := range append(p.before, p.pack) {
		_ = q.Close()
	}
	return p.folder.Close()
}

func (p *openPack) get() *archive.Pack {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pack
}

// Len returns the number of messages in the pack.
func (p *openPack) Len() int64 { return p.get().Len() }

// isSalvaged reports whether the pack's tables were rebuilt: they may lack what was damaged.
func (p *openPack) isSalvaged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.salvaged
}

// salvage rebuilds the tables of a damaged pack, in memory. It reports false if that failed or was done before.
func (p *openPack) salvage() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.salvaged {
		return false
	}
	p.salvaged = true
	pack, err := archive.Salvage(p.folder, archive.FileName(p.id))
	if err != nil {
		return false
	}
	p.before = append(p.before, p.pack)
	p.pack = pack
	return true
}

// entries yields the pack's entries of positions [from, to) of a line. Damaged ones are missing. Where tables are
// damaged, it may yield all twice.
func (p *openPack) entries(line uuid.UUID, from, to int64) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for {
			damaged := false
			for r, err := range p.get().Rows(line, from, to) {
				if damaged = damaged || err != nil; err == nil && !yield(p.entry(&r)) {
					return
				}
			}
			if !damaged || !p.salvage() {
				return
			}
		}
	}
}

func (p *openPack) entry(r *archive.Row) Entry {
	return Entry{
		Position: r.Position, ID: r.ID, File: r.File, Size: r.Size, Sum: r.Sum, At: r.At, Payloads: r.Payloads,
		Pack: p.id, place: r.Place,
	}
}

// row returns what the pack knows of an entry that came from it.
func (e *Entry) row() archive.Row {
	return archive.Row{Position: e.Position, ID: e.ID, Size: e.Size, Sum: e.Sum, Place: e.place}
}

// find yields the rows of an id. Where tables are damaged, it may yield some twice.
func (p *openPack) find(id uuid.UUID, yield func(archive.Row) bool) {
	for {
		damaged := false
		for r, err := range p.get().LookupID(id) {
			if damaged = damaged || err != nil; err == nil && !yield(r) {
				return
			}
		}
		if !damaged || !p.salvage() {
			return
		}
	}
}

// ReadPacked adds to out the envelopes of archived messages, from their packs. It leaves nil where a pack does not hold
// a message intact.
func (l *Log) ReadPacked(entries []Entry, out [][]byte) {
	for i := 0; i < len(entries); {
		n := 1
		for i+n < len(entries) && entries[i+n].Pack == entries[i].Pack {
			n++
		}
		if entries[i].Pack != uuid.Nil {
			l.readPack(entries[i:i+n], out[i:i+n])
		}
		i += n
	}
}

func (l *Log) readPack(entries []Entry, out [][]byte) {
	p, err := l.openPack(entries[0].Pack)
	if err != nil {
		return
	}
	defer p.Release() // decoding takes long: do not hold the state meanwhile
	rows := make([]archive.Row, len(entries))
	for i := range entries {
		rows[i] = entries[i].row()
	}
	copy(out, p.get().ReadMessages(rows))
}

func archived(e Entry) bool { return e.Pack != uuid.Nil }

// readPacked returns the envelope of one archived message, nil if it is unavailable.
func (s *state) readPacked(e *Entry) []byte {
	if !archived(*e) {
		return nil
	}
	p, err := s.openPack(e.Pack)
	if err != nil {
		return nil
	}
	defer p.Release()
	raw, _ := p.get().ReadMessage(e.row())
	return raw
}

// packIDs returns the existing packs, the oldest first.
func packIDs(dir *ctxfolder.Dir) (ids []uuid.UUID, err error) {
	for e, err := range dir.FS.ReadDir(ctxfolder.Archive) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if info, serr := dir.FS.Lstat(ctxfolder.Archive); err != nil && serr == nil && !info.IsDir() {
			break // the next new pack sets it aside
		}
		if err != nil {
			return nil, err
		}
		if id, ok := archive.ParseFileName(e.Name()); ok {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids, nil
}

// readPacks takes the messages of the existing packs. A pack counts more than the same version elsewhere: a writer may
// be about to remove its file.
func (b *rebuilder) readPacks() error {
	ids, err := packIDs(b.s.dir)
	if err != nil {
		return err
	}
	named, others := b.packsOf(ids)
	for n, id := range slices.Concat(named, others) {
		p, err := b.s.openPack(id)
		if errors.Is(err, ErrDamaged) {
			b.s.note("archive", "%v", err)
			continue
		}
		if err != nil {
			return err
		}
		for i := range b.metadata.Lines {
			ln := &b.metadata.Lines[i]
			for e := range p.entries(ln.ID, 0, math.MaxInt64) {
				if old, taken := b.found[ln.ID][e.Position]; taken && old.ID != e.ID {
					b.noteClaim(ln.ID, old, e.ID) // rows, and packs that index.json names, count more
					b.isOlder(e, old)
					continue
				}
				if n >= len(named) && e.Position >= b.counts[ln.ID].End() {
					b.addSpare(ln.ID, e) // another history may have continued there
					continue
				}
				b.offer(ln.ID, e)
				b.rows[fileKey{ln.Folder, e.FileID()}] = e
			}
		}
		p.Release()
	}
	b.s.packOrder = inOrder(ids, b.older)
	return nil
}

// packsOf splits packs into those that index.json names and the others, which may be of another history. Without
// index.json all count as named.
func (b *rebuilder) packsOf(ids []uuid.UUID) (named, others []uuid.UUID) {
	for _, id := range ids {
		if b.x == nil || slices.ContainsFunc(b.x.Lines, func(l FoldedLine) bool { return slices.Contains(l.Packs, id) }) {
			named = append(named, id)
		} else {
			others = append(others, id)
		}
	}
	return named, others
}

// inOrder returns packs in an order that respects before. Ids order them by time, but a clock can be set back.
func inOrder(ids []uuid.UUID, before map[[2]uuid.UUID]bool) []uuid.UUID {
	left, out := slices.Clone(ids), make([]uuid.UUID, 0, len(ids))
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(id uuid.UUID) bool {
			return !slices.ContainsFunc(left, func(other uuid.UUID) bool { return before[[2]uuid.UUID{other, id}] })
		})
		next = max(next, 0)
		out = append(out, left[next])
		left = slices.Delete(left, next, next+1)
	}
	return out
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
