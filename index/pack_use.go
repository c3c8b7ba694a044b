package index

import (
	stdcontext "context"
	"errors"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Packs returns the packs that lines are read from, in ascending order of precedence.
func (l *Log) Packs() (ids []uuid.UUID, err error) {
	err = l.view(func(s *state) { ids = s.packsInOrder() })
	return ids, err
}

func (s *state) packsInOrder() []uuid.UUID {
	if s.unsaved {
		return slices.Clone(s.packOrder)
	}
	var ids []uuid.UUID
	before := map[[2]uuid.UUID]bool{}
	for _, ln := range s.lines {
		for i, id := range ln.Packs {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			if i > 0 {
				before[[2]uuid.UUID{ln.Packs[i-1], id}] = true
			}
		}
	}
	slices.SortFunc(ids, compareIDs)
	return inOrder(ids, before)
}

// Archived returns how many bytes of a line's envelopes are read from packs.
func (l *Log) Archived(line uuid.UUID) (bytes int64, err error) {
	err = l.view(func(s *state) {
		ln := s.lines[line]
		if ln == nil {
			return
		}
		bytes = min(ln.Archived, ln.Bytes)
		if s.unsaved {
			for i := range ln.recent {
				if archived(ln.recent[i]) {
					bytes += ln.recent[i].Size
				}
			}
		}
	})
	return bytes, err
}

// PackUse describes what a context reads from a pack.
type PackUse struct {
	ID         uuid.UUID
	Live       map[uuid.UUID]Spans // positions, by line
	Bytes      int64               // of these messages
	TotalBytes int64               // bytes of all messages in the pack; 0 if it is damaged
	Size       int64               // of the file
	Named      bool                // by the index; interrupted processes left the others
	Lost       int64               // messages in the pack that the index marks lost
	Hidden     int64               // in an unnamed pack, of another history: messages and newer versions that the context does not show
	Cut        int64               // messages that were cut off from their line: a rebuild would bring them back
}

// PackUses returns the packs in archive/ and how much of each is in use.
func (l *Log) PackUses(ctx stdcontext.Context) ([]PackUse, error) {
	there, err := packIDs(l.dir)
	if err != nil {
		return nil, err
	}
	named, err := l.Packs()
	if err != nil || len(there) == 0 {
		return nil, err
	}
	uses := make([]PackUse, len(there))
	byID := map[uuid.UUID]*PackUse{}
	for i, id := range there {
		uses[i] = PackUse{ID: id, Live: map[uuid.UUID]Spans{}, Named: slices.Contains(named, id)}
		if info, err := l.dir.FS.Lstat(ctxfolder.Archive + "/" + archive.FileName(id)); err == nil {
			uses[i].Size = info.Size()
		}
		err := l.withPack(id, func(p *openPack) error {
			uses[i].TotalBytes = p.get().Bytes()
			return nil
		})
		if err != nil {
			return nil, err
		}
		byID[id] = &uses[i]
	}
	counts, _, err := l.AllCounts()
	if err != nil {
		return nil, err
	}
	for i := range uses {
		err := l.countCut(&uses[i], counts)
		if err == nil && !uses[i].Named {
			if err = l.countLost(ctx, &uses[i], counts); err == nil {
				err = l.countHidden(&uses[i])
			}
		}
		if err != nil {
			return nil, err
		}
	}
	for line := range counts {
		for e, err := range l.All(ctx, line, 0, math.MaxInt64) {
			if err != nil {
				return nil, err
			}
			if use := byID[e.Pack]; use != nil {
				live := use.Live[line]
				live.Add(e.Position)
				use.Live[line] = live
				use.Bytes += e.Size
			}
		}
	}
	return uses, nil
}

// HasUnnamedPacks reports whether there are packs that the index does not name.
func (l *Log) HasUnnamedPacks() (bool, error) {
	there, err := packIDs(l.dir)
	if err != nil || len(there) == 0 {
		return false, err
	}
	named, err := l.Packs()
	return slices.ContainsFunc(there, func(id uuid.UUID) bool { return !slices.Contains(named, id) }), err
}

// withPack calls f with a pack, unless the pack is damaged: a check reports that. If it cannot be read for another
// reason, it may hold anything.
func (l *Log) withPack(id uuid.UUID, f func(p *openPack) error) error {
	p, err := l.openPack(id)
	if errors.Is(err, ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Release()
	return f(p)
}

// countLost counts the messages of a pack that the index marks lost: the pack was away for a while.
func (l *Log) countLost(ctx stdcontext.Context, use *PackUse, counts map[uuid.UUID]Counts) error {
	return l.withPack(use.ID, func(p *openPack) error {
		for line := range counts {
			for entries, err := range l.Pages(ctx, line, 0, math.MaxInt64) {
				if err != nil {
					return err
				}
				from := entries[0].Position
				for e := range p.entries(line, from, from+int64(len(entries))) {
					if now := &entries[e.Position-from]; now.isLost() && (now.ID == e.ID || now.ID == uuid.Nil) {
						use.Lost++
					}
				}
			}
		}
		return nil
	})
}

// countHidden counts the messages of a pack that the context does not show, except those marked lost.
func (l *Log) countHidden(use *PackUse) error {
	if x, err := readIndexFile(l.dir); err == nil && slices.Contains(x.Dropped, use.ID) {
		return nil
	}
	has := &inventory{log: l}
	err := has.eachArchived(use.ID, func(*openPack, *Entry) error {
		use.Hidden++
		return nil
	})
	use.Hidden = max(use.Hidden-use.Lost, 0)
	return err
}

// countCut counts the messages of a pack that were cut off from their lines.
func (l *Log) countCut(use *PackUse, counts map[uuid.UUID]Counts) error {
	return l.withPack(use.ID, func(p *openPack) error {
		for run, err := range p.get().Runs() {
			if errors.Is(err, archive.ErrDamaged) {
				continue
			}
			if err != nil {
				return err
			}
			end := int64(0)
			if c, ok := counts[run.Line]; ok {
				end = c.End()
			}
			use.Cut += max(run.To-max(run.From, end), 0)
		}
		return nil
	})
}

// HasCutMessages reports whether a pack has messages that were cut off from their lines.
func (l *Log) HasCutMessages() (bool, error) {
	there, err := packIDs(l.dir)
	if err != nil || len(there) == 0 {
		return false, err
	}
	counts, _, err := l.AllCounts()
	for _, id := range there {
		use := PackUse{ID: id}
		if err == nil {
			err = l.countCut(&use, counts)
		}
		if err != nil || use.Cut > 0 {
			return err == nil, err
		}
	}
	return false, nil
}
