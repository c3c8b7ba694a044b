package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// SwitchState says how far a context is on its way to another storage mode.
type SwitchState string

// States of a switch, in order.
const (
	SwitchPending   SwitchState = "pending"   // nothing happened, or what happened was interrupted
	SwitchSent      SwitchState = "sent"      // both sides should have the same, but one of them cannot show it
	SwitchConfirmed SwitchState = "confirmed" // both sides have read all of it, and the one that keeps it lacks nothing
	SwitchCleaned   SwitchState = "cleaned"   // the side that gives it up moved it to its trash
)

// Switched is what happened with a context.
type Switched struct {
	ID       uuid.UUID
	State    SwitchState
	Messages int64
	Digest   string // the sum of the side that keeps it, in hexadecimal digits; empty before SwitchConfirmed
	Err      error  // why it is no further
}

// SwitchOptions configure [Confirm] and [CleanUp].
type SwitchOptions struct {
	DryRun   bool           // change nothing, and report contexts as SwitchPending
	Pull     bool           // only change the store: it is enough if it has all that the peer has
	Host     string         // as in [Options]
	Report   func(Switched) // receives each context; may be nil
	Progress func(done, of int)
}

// Confirm brings contexts together with a peer, whatever the storage mode says, and compares what both sides read back: their
// sums are the same, or the store has more than the peer, with Pull. It returns how many contexts are not confirmed. It may be
// interrupted at any point, and begin again.
func Confirm(ctx context.Context, local *Folder, remote Peer, ids []uuid.UUID, o SwitchOptions) (unconfirmed int, err error) {
	err = o.each(ids, func(part []uuid.UUID) error {
		n, err := o.confirm(ctx, local, remote, part)
		unconfirmed += n
		return err
	})
	return unconfirmed, err
}

// each calls f with parts of a list.
func (o *SwitchOptions) each(ids []uuid.UUID, f func(part []uuid.UUID) error) error {
	done := 0
	for part := range slices.Chunk(ids, batch) {
		if o.Progress != nil {
			o.Progress(done, len(ids))
		}
		done += len(part)
		if err := f(part); err != nil {
			return err
		}
	}
	return nil
}

func (o *SwitchOptions) report(s Switched) {
	if o.Report != nil {
		o.Report(s)
	}
}

func (o *SwitchOptions) confirm(ctx context.Context, local *Folder, remote Peer, ids []uuid.UUID) (unconfirmed int, err error) {
	for try := range tries {
		failed := map[uuid.UUID]error{}
		_, err := Sync(ctx, local, remote, Options{
			Contexts: ids, DryRun: o.DryRun, Pull: o.Pull, Host: o.Host, asked: true, Report: func(r Synced) { failed[r.ID] = r.Err },
		})
		if err != nil {
			return len(ids), err
		}
		var again []uuid.UUID
		pairs, err := digests(ctx, local, remote, ids, o.Pull && !o.DryRun)
		if err != nil {
			return len(ids), err
		}
		for i, id := range ids {
			s := pairs[i].switched(id, o.DryRun)
			if s.Err = firstOf(failed[id], s.Err); s.Err != nil && s.State != SwitchPending {
				s.State = SwitchSent
			}
			if s.State == SwitchPending && s.Err == nil && !o.DryRun && try < tries-1 { // somebody wrote to it
				again = append(again, id)
				continue
			}
			if s.State != SwitchConfirmed {
				unconfirmed++
			}
			o.report(s)
		}
		if ids = again; len(ids) == 0 {
			return unconfirmed, nil
		}
	}
	return unconfirmed, nil
}

// twoDigests are what both sides have of a context.
type twoDigests struct {
	l, r Digest
	more bool // the store has all that the peer has, and more
}

// digests reads contexts on both sides. With more, it finds those of which the store has more than the peer.
func digests(ctx context.Context, local *Folder, remote Peer, ids []uuid.UUID, more bool) ([]twoDigests, error) {
	l, err := local.Digests(ctx, ids)
	if err != nil {
		return nil, err
	}
	r, err := remote.Digests(ctx, ids)
	if err != nil {
		return nil, err
	}
	all := make([]twoDigests, len(ids))
	var differ []uuid.UUID
	for i := range all {
		if all[i] = (twoDigests{l: l[i], r: r[i]}); l[i].Err == nil && r[i].Err == nil && l[i].Sum != r[i].Sum {
			differ = append(differ, ids[i])
		}
	}
	if !more || len(differ) == 0 {
		return all, nil
	}
	lacks := map[uuid.UUID]bool{}
	_, err = Sync(ctx, local, remote, Options{
		Contexts: differ, Pull: true, DryRun: true, asked: true, Report: func(s Synced) { lacks[s.ID] = true },
	})
	for i, id := range ids {
		all[i].more = slices.Contains(differ, id) && !lacks[id]
	}
	return all, err
}

// switched compares two digests.
func (d *twoDigests) switched(id uuid.UUID, dryRun bool) Switched {
	s := Switched{ID: id, State: SwitchPending, Messages: max(d.l.Messages, d.r.Messages)}
	switch {
	case dryRun:
	case d.l.Err != nil:
		s.State, s.Err = SwitchSent, d.l.Err
	case d.r.Err != nil:
		s.State, s.Err = SwitchSent, fmt.Errorf("on the other side: %w", d.r.Err)
	case d.l.Sum == d.r.Sum, d.more:
		s.State, s.Digest = SwitchConfirmed, d.l.String()
	}
	return s
}

// CleanUp moves contexts to the trash of this store, or of the peer, if the other side has read all of them back
// now, and lacks nothing, and nobody writes to them meanwhile. Sync then leaves those that it cleaned here as they are on the peer, until
// [Confirm] brings them back; those that it cleaned on the peer go on here alone. It returns how many contexts stay.
//
// Crash order: what cleaning means is durable before the context goes to the trash. In between, both sides have it, and another
// CleanUp or Sync goes on.
func CleanUp(ctx context.Context, local *Folder, remote Peer, ids []uuid.UUID, here bool, o SwitchOptions) (stay int, err error) {
	err = o.each(ids, func(part []uuid.UUID) error {
		n, err := o.cleanUp(ctx, local, remote, part, here)
		stay += n
		return err
	})
	return stay, err
}

func (o *SwitchOptions) cleanUp(ctx context.Context, local *Folder, remote Peer, ids []uuid.UUID, here bool) (stay int, err error) {
	peer, err := remote.Store(ctx)
	if err != nil {
		return len(ids), err
	}
	disk, err := local.disk()
	if err != nil {
		return len(ids), err
	}
	defer disk.Close()
	release, err := lockAgreements(ctx, disk, peer)
	if err != nil {
		return len(ids), err
	}
	defer release()
	pairs, err := digests(ctx, local, remote, ids, !here)
	if err != nil {
		return len(ids), err
	}
	var all []Switched
	var changes []Change
	for i, id := range ids {
		s := pairs[i].switched(id, false)
		if s.State == SwitchPending {
			s.Err = fmt.Errorf("%w: the context stays: it was changed meanwhile", ctxdir.ErrConflict)
		}
		if s.State == SwitchConfirmed {
			at := pairs[i].r.Sequence
			if here {
				at = pairs[i].l.Sequence
			}
			changes = append(changes, Change{ID: id, Remove: true, Sequence: &at})
		}
		all = append(all, s)
	}
	if err := markCleaned(readAgreements(disk, peer), changes, here); err != nil {
		return len(ids), err
	}
	from := remote
	if here {
		from = local
	}
	results, err := from.Apply(ctx, changes, nil)
	if err != nil {
		return len(ids), err
	}
	for i := range all {
		s := &all[i]
		j := slices.IndexFunc(changes, func(c Change) bool { return c.ID == s.ID })
		switch {
		case j < 0:
		case errors.Is(results[j].Err, ctxdir.ErrPosition):
			s.Err = fmt.Errorf("%w: the context stays: it was changed meanwhile", ctxdir.ErrConflict)
		case results[j].Err != nil:
			s.Err = results[j].Err
		default:
			s.State = SwitchCleaned
		}
		if s.State != SwitchCleaned {
			stay++
		}
		o.report(*s)
	}
	return stay, nil
}

// markCleaned notes that contexts which are about to go to a trash are not removed.
func markCleaned(a *agreements, changes []Change, here bool) error {
	for _, c := range changes {
		if !here {
			delete(a.all, c.ID)
			continue
		}
		if a.all[c.ID] == nil {
			a.all[c.ID] = &agreed{}
		}
		a.all[c.ID].Away = true
	}
	return a.save()
}

// Held is how much of what a store knows a peer has, as far as is known here.
type Held struct {
	Contexts int         // that both sides had when they last agreed
	Away     []uuid.UUID // those of them that were cleaned up here, in order
}

// HeldBy returns what a peer, which is known by its id, holds.
func HeldBy(f *Folder, peer uuid.UUID) (Held, error) {
	disk, err := f.disk()
	if err != nil {
		return Held{}, err
	}
	defer disk.Close()
	all := readAgreements(disk, peer).all
	h := Held{Contexts: len(all)}
	for _, id := range slices.SortedFunc(maps.Keys(all), compareIDs) {
		if all[id].Away {
			h.Away = append(h.Away, id)
		}
	}
	return h, nil
}
