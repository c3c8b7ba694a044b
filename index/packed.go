package index

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
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
	ID     uuid.UUID
	Live   map[uuid.UUID]Spans // positions, by line
	Bytes  int64               // of these messages
	Holds  int64               // bytes of all messages in the pack; 0 if it cannot be opened
	Size   int64               // of the file
	Named  bool                // by the index; interrupted processes left the others
	Lost   int64               // messages in the pack that the index marks lost
	Hidden int64               // in an unnamed pack, of another history: messages and newer versions that the context does not show
	Cut    int64               // messages that were cut off from their line: a rebuild would bring them back
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
		if p, err := l.openPack(id); err == nil {
			uses[i].Holds = p.get().Bytes()
			p.Release()
		}
		byID[id] = &uses[i]
	}
	counts, _, err := l.AllCounts()
	if err != nil {
		return nil, err
	}
	for i := range uses {
		l.countCut(&uses[i], counts)
		if !uses[i].Named {
			l.countLost(ctx, &uses[i], counts)
			if err := l.countHidden(&uses[i]); err != nil {
				return nil, err
			}
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

// Unnamed reports whether there are packs that the index does not name.
func (l *Log) Unnamed() (bool, error) {
	there, err := packIDs(l.dir)
	if err != nil || len(there) == 0 {
		return false, err
	}
	named, err := l.Packs()
	return slices.ContainsFunc(there, func(id uuid.UUID) bool { return !slices.Contains(named, id) }), err
}

// countLost counts the messages of a pack that the index marks lost: the pack was away for a while.
func (l *Log) countLost(ctx stdcontext.Context, use *PackUse, counts map[uuid.UUID]Counts) {
	p, err := l.openPack(use.ID)
	if err != nil {
		return
	}
	defer p.Release()
	for line := range counts {
		for entries, err := range l.Pages(ctx, line, 0, math.MaxInt64) {
			if err != nil {
				break
			}
			from := entries[0].Position
			for e := range p.entries(line, from, from+int64(len(entries))) {
				if now := &entries[e.Position-from]; now.unfound() && (now.ID == e.ID || now.ID == uuid.Nil) {
					use.Lost++
				}
			}
		}
	}
}

// countHidden counts the messages of a pack that the context does not show, except those marked lost.
func (l *Log) countHidden(use *PackUse) error {
	if x, err := readFolded(l.dir); err == nil && slices.Contains(x.Dropped, use.ID) {
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
func (l *Log) countCut(use *PackUse, counts map[uuid.UUID]Counts) {
	p, err := l.openPack(use.ID)
	if err != nil {
		return
	}
	defer p.Release()
	for run, err := range p.get().Runs() {
		if err != nil {
			continue
		}
		end := int64(0)
		if c, ok := counts[run.Line]; ok {
			end = c.End()
		}
		use.Cut += max(run.To-max(run.From, end), 0)
	}
}

// HoldsCut reports whether a pack has messages that were cut off from their lines.
func (l *Log) HoldsCut() (bool, error) {
	there, err := packIDs(l.dir)
	if err != nil || len(there) == 0 {
		return false, err
	}
	counts, _, err := l.AllCounts()
	return err == nil && slices.ContainsFunc(there, func(id uuid.UUID) bool {
		use := PackUse{ID: id}
		l.countCut(&use, counts)
		return use.Cut > 0
	}), err
}

// ArchivedPayload returns a verified payload from a pack, or nil when no pack has it undamaged.
func (l *Log) ArchivedPayload(sum Sum) (payload []byte) {
	l.eachPack(true, func(p *openPack) bool {
		payload, _ = p.payload(sum)
		return payload == nil
	})
	return payload
}

// HasArchivedPayload reports whether the table of a pack that lines are read from names a payload. It then stays there.
func (l *Log) HasArchivedPayload(sum Sum) (has bool) {
	l.eachPack(false, func(p *openPack) bool {
		has = p.hasPayload(sum)
		return !has
	})
	return has
}

// eachPack calls f for each pack that lines are read from, and with unnamed for all packs, without holding the state.
func (l *Log) eachPack(unnamed bool, f func(*openPack) bool) {
	var packs []*openPack
	_ = l.view(func(s *state) {
		ids := s.packsInOrder()
		if unnamed {
			ids, _ = packIDs(s.dir)
		}
		for _, id := range ids {
			if p, err := s.openPack(id); err == nil {
				packs = append(packs, p)
			}
		}
	})
	more := true
	for _, p := range packs {
		more = more && f(p)
		p.Release()
	}
}

func (p *openPack) payload(sum Sum) ([]byte, error) {
	b, err := p.get().Payload(archive.Sum(sum))
	if errors.Is(err, archive.ErrDamaged) && p.salvage() {
		b, err = p.get().Payload(archive.Sum(sum))
	}
	return b, err
}

func (p *openPack) hasPayload(sum Sum) bool {
	has, err := p.get().HasPayload(archive.Sum(sum))
	if errors.Is(err, archive.ErrDamaged) && p.salvage() {
		has, _ = p.get().HasPayload(archive.Sum(sum))
	}
	return has
}

// PackDamage is a damaged part of a pack.
type PackDamage struct {
	Pack uuid.UUID
	archive.Damage
}

// VerifyPacks yields the damage in packs that lines are read from. With data it reads them whole, else it opens them.
func (l *Log) VerifyPacks(ctx stdcontext.Context, data bool) iter.Seq2[PackDamage, error] {
	return func(yield func(PackDamage, error) bool) {
		ids, err := l.Packs()
		for _, id := range ids {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				break
			}
			var more bool
			if more, err = l.verifyPack(id, data, yield); !more {
				return
			}
		}
		if err != nil {
			yield(PackDamage{}, err)
		}
	}
}

func (l *Log) verifyPack(id uuid.UUID, data bool, yield func(PackDamage, error) bool) (more bool, err error) {
	folder, err := l.dir.FS.Sub(ctxfolder.Archive)
	var p *archive.Pack
	if err == nil {
		defer folder.Close()
		p, err = archive.Open(folder, archive.FileName(id))
	}
	if err != nil {
		err = noPack(l.dir.FS, id, err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil // reading the index reports it, and it may be gone since
	case errors.Is(err, ErrDamaged):
		return yield(PackDamage{id, archive.Damage{Part: "tables", Err: err}}, nil), nil
	case err != nil:
		return true, err
	}
	defer p.Close() //nolint:errcheck // it was read
	if !data {
		return true, nil
	}
	for d := range p.Verify() {
		if !yield(PackDamage{id, d}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// DropPack moves a pack that no line is read from to the trash. Its payloads become blobs first: items in the trash may
// refer to them. It is for use in [Log.Exclusively].
func (l *Log) DropPack(id uuid.UUID) error {
	err := l.giveUpPack(id, l.dir.SetAside)
	if errors.Is(err, ErrBusy) {
		return nil // it is in use again
	}
	return err
}

// RemovePack is DropPack for a pack that must not be kept.
func (l *Log) RemovePack(id uuid.UUID) error {
	if err := l.giveUpPack(id, l.remove); err != nil {
		return err
	}
	return l.dir.FS.SyncDir(ctxfolder.Archive)
}

func (l *Log) giveUpPack(id uuid.UUID, remove func(path string) error) error {
	l.advance.Lock()
	defer l.advance.Unlock()
	if slices.Contains(l.state.packsInOrder(), id) {
		return fmt.Errorf("%w: pack %s is in use", ErrBusy, id)
	}
	if err := l.syncIndex(); err != nil {
		return err
	}
	if err := l.keepPacked(id, nil); err != nil {
		return err
	}
	return remove(ctxfolder.Archive + "/" + archive.FileName(id))
}

// RemoveFromPack removes an unused pack with messages that must not be kept. It is for use in [Log.Exclusively].
func (l *Log) RemoveFromPack(id uuid.UUID, messages map[uuid.UUID]bool) error {
	if err := l.keepHidden(id, messages); err != nil {
		return err
	}
	return l.RemovePack(id)
}

// keepHidden writes a new pack with the messages of another history in a pack about to go, except those in but.
//
// Crash order: the new pack is durable before the old one goes.
func (l *Log) keepHidden(id uuid.UUID, but map[uuid.UUID]bool) error {
	folder, err := l.dir.FS.Sub(ctxfolder.Archive)
	if err != nil {
		return err
	}
	defer folder.Close()
	var w *archive.Writer
	has := &inventory{log: l}
	err = has.eachArchived(id, func(p *openPack, e *Entry) error {
		raw, _ := p.get().ReadMessage(e.row())
		if raw == nil || but[e.ID] {
			return nil
		}
		if w == nil {
			if w, err = archive.Create(folder); err != nil {
				return err
			}
		}
		err := w.Add(raw)
		if errors.Is(err, archive.ErrOrder) {
			err = nil // a damaged pack may yield a message twice
		}
		return err
	})
	if w == nil {
		return err
	}
	if err == nil {
		_, err = w.Commit()
	}
	w.Abort() // does nothing after Commit
	return err
}

// ArchivedVersion is a version of a message in a pack, whether it counts or not.
type ArchivedVersion struct {
	Pack     uuid.UUID
	ID       uuid.UUID // of the message
	Envelope []byte    // nil if it is damaged
}

// ArchivedVersions yields all versions of some messages in the existing packs, pack by pack. It fails with an error
// that wraps ErrDamaged if an unreadable part of a pack may hold one.
func (l *Log) ArchivedVersions(ids map[uuid.UUID]bool) iter.Seq2[ArchivedVersion, error] {
	return func(yield func(ArchivedVersion, error) bool) {
		packs, err := packIDs(l.dir)
		if err != nil {
			yield(ArchivedVersion{}, err)
			return
		}
		for _, id := range packs {
			p, err := l.openPack(id)
			if err != nil && !errors.Is(err, ErrDamaged) {
				yield(ArchivedVersion{}, err)
				return
			}
			if p == nil {
				continue // nothing in it is readable
			}
			rest := maps.Clone(ids)
			more := p.versions(ids, func(v ArchivedVersion, err error) bool {
				delete(rest, v.ID)
				return yield(v, err)
			})
			doubt, err := archive.MayHold(p.folder, archive.FileName(id), rest)
			p.Release()
			if !more {
				return
			}
			if doubt {
				err = fmt.Errorf("%w: pack %s is, where it may have the message; a repair comes first", ErrDamaged, id)
			}
			if err != nil {
				yield(ArchivedVersion{}, err)
				return
			}
		}
	}
}

func (p *openPack) versions(ids map[uuid.UUID]bool, yield func(ArchivedVersion, error) bool) (more bool) {
	more = true
	for id := range ids {
		seen := map[archive.Place]bool{}
		p.find(id, func(r archive.Row) bool {
			if !seen[r.Place] {
				seen[r.Place] = true
				raw, _ := p.get().ReadMessage(r)
				more = yield(ArchivedVersion{p.id, id, raw}, nil)
			}
			return more
		})
		if !more {
			break
		}
	}
	return more
}

// keepPacked stores the payloads of a pack as blobs, except those that the pack but has.
func (l *Log) keepPacked(id uuid.UUID, but *archive.Writer) error {
	p, err := l.openPack(id)
	if errors.Is(err, ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Release()
	if p.get().PayloadCount() == 0 {
		return nil
	}
	if l.opts.Payloads == nil {
		return errNoPlace
	}
	return l.opts.Payloads.Keep(func(yield func([]byte) bool) {
		for sum, err := range p.get().Payloads() {
			if err != nil || but != nil && but.HasPayload(sum) {
				continue
			}
			// A damaged payload would be damaged as a blob, too.
			if payload, err := p.payload(Sum(sum)); err == nil && !yield(payload) {
				return
			}
		}
	}, true)
}

// EachArchived calls f for each whole message in any pack of a context, whether it counts or not.
func EachArchived(dir *ctxfolder.Dir, f func(*message.Envelope)) error {
	return EachArchivedEnvelope(dir, func(raw []byte) {
		if env, err := message.ParseTrusted(raw); err == nil {
			f(&env)
		}
	})
}

// EachArchivedEnvelope is EachArchived for the bytes of the messages, which are valid until f returns.
func EachArchivedEnvelope(dir *ctxfolder.Dir, f func(raw []byte)) error {
	ids, err := packIDs(dir)
	if err != nil || len(ids) == 0 {
		return err
	}
	folder, err := dir.FS.Sub(ctxfolder.Archive)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, id := range ids {
		for found, err := range archive.Scan(folder, archive.FileName(id)) {
			if err != nil {
				if err = noPack(dir.FS, id, err); !errors.Is(err, ErrDamaged) {
					return err
				}
				break
			}
			if found.Envelope != nil {
				f(found.Envelope)
			}
		}
	}
	return nil
}
