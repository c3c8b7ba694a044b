package index

import (
	"cmp"
	stdcontext "context"
	"errors"
	"io/fs"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// Stray is a journal in the context's folder outside its history: a journal of an older or another copy of the context,
// or one that nothing names any more.
type Stray struct {
	Journal uint64
	Hidden  int64 // messages, and newer versions of messages, that the context does not show
	Next    bool  // its number is still to come, so it is no older journal of this history
	Problem error // why it could not be read whole
}

// Strays returns the stray journals. An older journal, which a crash can leave, is not stray if the context shows all
// of it.
func (l *Log) Strays(ctx stdcontext.Context) (strays []Stray, err error) {
	gens, err := generations(l.dir) // first, so that it has no journals that others begin from here on
	if err == nil {
		err = l.Refresh()
	}
	if err != nil {
		return nil, err
	}
	var own []uint64
	var newest uint64
	err = l.view(func(s *state) {
		own = slices.Clone(s.folded.gens)
		for _, j := range s.journals {
			own, newest = append(own, j.gen), max(newest, j.gen)
		}
		if s.unsaved { // nothing is settled: the next writer moves all journals to the trash
			own = gens
		}
	})
	own = append(own, l.leading(gens, own)...)
	has := &inventory{log: l}
	for _, gen := range gens {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(own, gen) {
			continue
		}
		stray := Stray{Journal: gen, Next: gen > newest}
		stray.Problem, err = has.eachHidden(gen, func(*message.Address, func() ([]byte, error)) error {
			stray.Hidden++
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it is blank, or was removed meanwhile
			continue
		}
		if stray.Next || stray.Hidden > 0 || stray.Problem != nil {
			strays = append(strays, stray)
		}
	}
	return strays, err
}

// leading returns the journals below own ones that lead to these without a gap, oldest first: a crash left them. What
// the context does not show of them was cut off since.
func (l *Log) leading(gens, own []uint64) (leading []uint64) {
	var next *journal
	for _, gen := range slices.Backward(gens) {
		named := slices.Contains(own, gen)
		if !named && next == nil {
			continue // it is newer
		}
		j, err := openJournal(l.dir, gen, nil)
		if err == nil && !named {
			if end, exact := j.endSpot(); !exact || !next.has(end) {
				err = ErrDamaged
			}
		}
		if next != nil {
			_ = next.f.Close()
		}
		if next = j; err != nil {
			break
		}
		if !named {
			leading = slices.Insert(leading, 0, gen)
		}
	}
	if next != nil {
		_ = next.f.Close()
	}
	return leading
}

// HiddenInJournal calls f for each message of a stray journal that the context has in no version.
func (l *Log) HiddenInJournal(gen uint64, f func(envelope []byte) error) error {
	has := &inventory{log: l, absent: true}
	_, err := has.eachHidden(gen, func(_ *message.Address, read func() ([]byte, error)) error {
		raw, err := read()
		if err != nil {
			return nil //nolint:nilerr // it is damaged
		}
		return f(raw)
	})
	return err
}

// HiddenInPack calls f for each message of a pack that the context has in no version.
func (l *Log) HiddenInPack(id uuid.UUID, f func(envelope []byte) error) error {
	has := &inventory{log: l, absent: true}
	return has.eachArchived(id, func(p *openPack, e *Entry) error {
		raw, _ := p.get().ReadMessage(e.row())
		if raw == nil {
			return nil
		}
		return f(raw)
	})
}

// UnknownLines returns the lines that metadata.json does not know and the index has messages of. It counts their
// messages that a journal or a pack has, and no other line.
func (l *Log) UnknownLines(ctx stdcontext.Context) (map[uuid.UUID]int64, error) {
	counts, _, err := l.AllCounts()
	if err != nil {
		return nil, err
	}
	var known map[uuid.UUID]string
	err = l.view(func(s *state) { known = s.folders() })
	unknown := map[uuid.UUID]int64{}
	for line := range counts {
		if _, ok := known[line]; ok || err != nil {
			continue
		}
		if err = ctx.Err(); err == nil {
			err = l.HiddenInLine(line, func([]byte) error {
				unknown[line]++
				return nil
			})
		}
	}
	return unknown, err
}

// HiddenInLine calls f for each message of a line that metadata.json does not know, if a journal or a pack has it and
// no other line does.
func (l *Log) HiddenInLine(line uuid.UUID, f func(envelope []byte) error) error {
	has := &inventory{log: l}
	for e, err := range l.All(stdcontext.Background(), line, 0, math.MaxInt64) {
		hidden := false
		if err == nil && e.Lost == "" {
			hidden, err = has.lacks(e)
		}
		if hidden && err == nil {
			if raw, ok := l.ReadRecord(e); ok {
				err = f(raw)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TrashStray moves a stray journal to the trash. Its payloads become blobs first. It is for use in
// [Log.Exclusively].
func (l *Log) TrashStray(gen uint64) error {
	l.advance.Lock()
	defer l.advance.Unlock()
	if _, err := l.readPayloads(gen, math.MaxInt64); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
		return err
	}
	return l.trash(ctxfolder.JournalFile(gen))
}

// TrashStrays moves all journals of other histories to the trash, even those with the names of the context's
// journals. It is for use in [Log.Exclusively].
func (l *Log) TrashStrays(ctx stdcontext.Context) error {
	strays, err := l.Strays(ctx)
	if err != nil {
		return err
	}
	replaced, err := l.ReplacedJournals()
	if err != nil {
		return err
	}
	for _, s := range strays {
		replaced = append(replaced, s.Journal)
	}
	for _, gen := range replaced {
		if err := l.TrashStray(gen); err != nil {
			return err
		}
	}
	return nil
}

// ReplacedJournals returns the journals of other histories that have the names of the context's own folded ones.
func (l *Log) ReplacedJournals() ([]uint64, error) {
	var own []uint64
	err := l.view(func(s *state) { own = s.namedJournals() })
	return l.replaced(own), err
}

// namedJournals returns the folded journals and the live one.
func (s *state) namedJournals() []uint64 {
	if len(s.journals) == 0 {
		return slices.Clone(s.folded.gens)
	}
	return append(slices.Clone(s.folded.gens), s.journals[0].gen)
}

// inventory determines which messages of other files the context has.
type inventory struct {
	log    *Log
	absent bool               // only messages that the context has in no version count as hidden
	copies map[version]bool   // the messages of all lines in metadata.json
	purged map[uuid.UUID]bool // lines that a purge is ending: what they had beyond their ends is to go
}

// version is a message as it was stored at a time. A message keeps both when it is adopted.
type version struct {
	id uuid.UUID
	at int64
}

// hides reports whether the context shows neither a message of a line nor a newer version of it. now is the context's
// entry at that position, nil for none. An older version of a lost message is not hidden: a repair would not put it
// there.
func (v *inventory) hides(line uuid.UUID, now, e *Entry) (bool, error) {
	if now != nil && now.ID == e.ID {
		return !v.absent && now.Lost != Erased && (e.At > now.At || now.Lost != "" && e.At == now.At), nil
	}
	hidden, err := v.lacks(e)
	return hidden && (now != nil || !v.purged[line]), err
}

// lacks reports whether no line in metadata.json shows a message, at any position.
func (v *inventory) lacks(e *Entry) (bool, error) {
	if v.copies == nil {
		if err := v.take(); err != nil {
			return false, err
		}
	}
	return !v.copies[version{e.ID, e.At}], nil
}

func (v *inventory) take() (err error) {
	var lines map[uuid.UUID]string
	v.purged = map[uuid.UUID]bool{}
	err = v.log.view(func(s *state) {
		lines = s.folders()
		for l := range lines {
			v.purged[l] = s.meta != nil && branch.IsPurged(s.meta, l)
		}
	})
	if err != nil {
		return err
	}
	v.copies = map[version]bool{}
	for line := range lines {
		for e, err := range v.log.All(stdcontext.Background(), line, 0, math.MaxInt64) {
			if err != nil {
				return err
			}
			if !e.isLost() {
				v.copies[version{e.ID, e.At}] = true
			}
		}
	}
	return nil
}

// eachHidden calls f for each message of a journal that the context does not show. damaged is why part was unreadable.
func (v *inventory) eachHidden(gen uint64, f func(a *message.Address, read func() ([]byte, error)) error) (damaged, err error) {
	j, err := openJournal(v.log.dir, gen, nil)
	if errors.Is(err, ErrDamaged) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer j.f.Close()
	n, damaged := j.whole()
	for i := range n.changes {
		c := &n.changes[i]
		if c.kind != KindAppend && c.kind != KindReplace {
			continue
		}
		e := entryOf(&c.address, c.head)
		now, err := v.log.Entries(c.address.Line, e.Position, e.Position+1)
		hidden := false
		if err == nil {
			hidden, err = v.hides(c.address.Line, first(now), &e)
		}
		if err == nil && hidden {
			err = f(&c.address, func() ([]byte, error) {
				_, body, err := j.readWhole(c.off, c.off+c.size())
				return body, err
			})
		}
		if err != nil {
			return damaged, err
		}
	}
	return damaged, nil
}

// eachArchived calls f for each message of a pack that the context does not show.
func (v *inventory) eachArchived(id uuid.UUID, f func(*openPack, *Entry) error) error {
	p, err := v.log.openPack(id)
	if errors.Is(err, ErrDamaged) {
		return nil // nothing in it is readable
	}
	if err != nil {
		return err
	}
	defer p.Release()
	for run, err := range p.get().Runs() {
		for from := run.From; err == nil && from < run.To; from += pageRows {
			err = v.someArchived(p, run.Line, from, min(from+pageRows, run.To), f)
		}
		if err != nil && !errors.Is(err, archive.ErrDamaged) {
			return err
		}
	}
	return nil
}

func (v *inventory) someArchived(p *openPack, line uuid.UUID, from, to int64, f func(*openPack, *Entry) error) error {
	now, err := v.log.Entries(line, from, to)
	if err != nil {
		return err
	}
	for e := range p.entries(line, from, to) {
		i, there := slices.BinarySearchFunc(now, e.Position, func(e Entry, position int64) int { return cmp.Compare(e.Position, position) })
		var is *Entry
		if there {
			is = &now[i]
		}
		hidden, err := v.hides(line, is, &e)
		if err == nil && hidden {
			err = f(p, &e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func first(entries []Entry) *Entry {
	if len(entries) == 0 {
		return nil
	}
	return &entries[0]
}
