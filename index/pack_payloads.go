package index

import (
	"errors"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/google/uuid"
)

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

// storePackPayloads stores the payloads of a pack as blobs, except those that the pack but has.
func (l *Log) storePackPayloads(id uuid.UUID, but *archive.Writer) error {
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
