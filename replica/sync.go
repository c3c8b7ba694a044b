package replica

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// batch is how many contexts are compared at once.
const batch = 64

// tries is how often a context is compared again if others write to it meanwhile.
const tries = 4

// session is one run of Sync.
type session struct {
	Options
	local  *Folder
	remote Peer
	agreed *agreements
	here   map[uuid.UUID]State // of contexts that are not as they were when both sides last agreed
	there  map[uuid.UUID]State
	total  Total
	keep   bool // contexts in local mode are compared, which are only pulled
}

// Sync brings a store and a peer together. The error includes neither contexts that failed nor what Report receives.
//
// Crash order: each change of a context is one commit, and the peer's come last. What both sides agreed on is written in the
// end: without it, the next run compares once more.
func Sync(ctx context.Context, local *Folder, remote Peer, o Options) (Total, error) {
	if o.Push && o.Pull {
		o.Push, o.Pull = false, false
	}
	if o.Heal {
		o.Push, o.Pull = false, true
	}
	o.Host = hostName(o.Host)
	peer, err := remote.Store(ctx)
	if err != nil {
		return Total{}, err
	}
	disk, err := local.disk()
	if err != nil {
		return Total{}, err
	}
	defer disk.Close()
	if !o.DryRun {
		release, err := lockAgreements(ctx, disk, peer)
		if err != nil {
			return Total{}, err
		}
		defer release()
	}
	s := &session{Options: o, local: local, remote: remote, agreed: readAgreements(disk, peer)}
	err = s.run(ctx)
	if !o.DryRun {
		err = errors.Join(err, s.agreed.save())
	}
	return s.total, err
}

func (s *session) run(ctx context.Context) error {
	known := s.agreed.commits
	if s.Heal { // a loss is no commit
		known = func(func(*agreed) string) map[uuid.UUID]string { return nil }
	}
	here, err := s.local.Contexts(ctx, known(func(a *agreed) string {
		if a.Away { // if it is here, it came back
			return ""
		}
		return a.Local
	}))
	if err != nil {
		return err
	}
	there, err := s.remote.Contexts(ctx, known(func(a *agreed) string { return a.Remote }))
	if err != nil {
		return err
	}
	stays, err := s.staying(ctx)
	if err != nil {
		return err
	}
	s.here, s.there = byID(here), byID(there)
	ids := map[uuid.UUID]bool{}
	for id := range s.here {
		ids[id] = true
	}
	for id := range s.there {
		ids[id] = true
	}
	todo := slices.SortedFunc(maps.Keys(ids), compareIDs)
	if s.Contexts != nil {
		todo = slices.DeleteFunc(todo, func(id uuid.UUID) bool { return !slices.Contains(s.Contexts, id) })
	}
	kept := slices.DeleteFunc(slices.Clone(todo), func(id uuid.UUID) bool { return !stays[id] })
	todo = slices.DeleteFunc(todo, func(id uuid.UUID) bool { return stays[id] })
	if err := s.all(ctx, todo); err != nil || s.Push {
		s.total.Kept += len(kept)
		return err
	}
	for _, id := range kept {
		if !s.isThere(s.there, id) { // there is nothing to pull
			s.total.Kept++
		}
	}
	s.keep, s.Pull = !s.Pull, true
	return s.all(ctx, slices.DeleteFunc(kept, func(id uuid.UUID) bool { return !s.isThere(s.there, id) }))
}

// staying returns the contexts here of which nothing may leave this machine, if the peer is elsewhere. It is called once it
// is known which contexts are here: a later one is none of them.
func (s *session) staying(ctx context.Context) (map[uuid.UUID]bool, error) {
	set, err := s.local.s.Settings()
	if _, here := s.remote.(*Folder); here || s.asked || s.Heal || err != nil {
		return nil, err
	}
	if set.StorageMode != ctxdir.StorageLocal && len(set.Modes) == 0 {
		return nil, nil
	}
	stays := map[uuid.UUID]bool{}
	for c, err := range s.local.s.List(ctx, ctxdir.ListOptions{Kind: "*"}) {
		if err != nil {
			return nil, err
		}
		stays[c.ID] = set.ModeOf(c.ID, c.Labels) == ctxdir.StorageLocal
	}
	return stays, nil
}

// all brings contexts together.
func (s *session) all(ctx context.Context, todo []uuid.UUID) error {
	done := 0
	for part := range slices.Chunk(todo, batch) {
		if s.Progress != nil {
			s.Progress(done, len(todo))
		}
		done += len(part)
		for try := range tries {
			again, err := s.bring(ctx, part, try == tries-1)
			if err != nil {
				return err
			}
			if part = again; len(part) == 0 {
				break
			}
		}
	}
	return nil
}

func byID(states []State) map[uuid.UUID]State {
	all := make(map[uuid.UUID]State, len(states))
	for _, x := range states {
		all[x.ID] = x
	}
	return all
}

// isThere reports whether a side has a context: the one that it had when both sides agreed, or another one.
func (s *session) isThere(side map[uuid.UUID]State, id uuid.UUID) bool {
	x, changed := side[id]
	return !changed && s.agreed.all[id] != nil || changed && x.Commit != ""
}

// bring brings contexts together. It returns those that others changed meanwhile; with last, these fail.
func (s *session) bring(ctx context.Context, ids []uuid.UUID, last bool) (again []uuid.UUID, err error) {
	var plans []*plan
	for _, id := range ids {
		p := &plan{id: id, base: s.agreed.all[id], host: s.Host, erased: map[uuid.UUID]bool{}, heal: s.Heal}
		if p.base != nil && p.base.isPart() {
			p.base, p.begun = nil, p.base
		}
		p.createL, p.createR = !s.isThere(s.here, id), !s.isThere(s.there, id)
		switch {
		case s.Heal && (p.createL || p.createR):
			continue
		case p.createL && p.base != nil && p.base.Away && !s.asked && !p.createR:
			continue
		case p.createL && p.createR:
			if !s.DryRun {
				delete(s.agreed.all, id)
			}
			continue
		case p.createL && p.base != nil && p.base.Away:
			p.base = nil
		case p.createL && s.here[id].Removed:
			p.removed = &p.remote
		case p.createR && s.there[id].Removed:
			p.removed = &p.local
		}
		plans = append(plans, p)
	}
	s.copyMissing(ctx, plans)
	if err := compare(ctx, s.local, s.remote, plans, s.Options); err != nil {
		return nil, err
	}
	if !s.DryRun {
		if err := change(ctx, s.local, s.remote, plans, s.Options); err != nil {
			return nil, err
		}
	}
	for _, p := range plans {
		if p.err != nil && len(p.moved) > 0 {
			s.agreed.all[p.id] = p.partly(s.agreed.all[p.id])
		}
		if !last && errors.Is(p.err, ctxdir.ErrPosition) {
			again = append(again, p.id)
			s.here[p.id], s.there[p.id] = State{ID: p.id, Commit: unknown}, State{ID: p.id, Commit: unknown}
			continue
		}
		s.done(p)
	}
	return again, nil
}

// unknown is the commit of a context that has changed meanwhile.
const unknown = "?"

// copies is how many contexts are copied at once: mostly they wait for the disk.
const copies = 8

// copyMissing copies the contexts that one of two stores on this machine lacks.
func (s *session) copyMissing(ctx context.Context, plans []*plan) {
	var all errgroup.Group
	all.SetLimit(copies)
	for _, p := range plans {
		all.Go(func() error {
			p.err = s.copyWhole(ctx, p)
			return nil
		})
	}
	_ = all.Wait() // each has its own error
	for _, p := range plans {
		if p.whole && p.base != nil {
			s.agreed.all[p.id] = p.base
		}
	}
}

// copyWhole copies a context that one of two stores on this machine lacks, with its segments as they are.
func (s *session) copyWhole(ctx context.Context, p *plan) error {
	other, ok := s.remote.(*Folder)
	if !ok || s.DryRun || p.removed != nil || p.createL == p.createR || p.createR && s.Pull || p.createL && s.Push {
		return nil
	}
	from, to := s.local, other
	if p.createL {
		from, to = other, s.local
	}
	done, err := from.s.Backup(ctx, p.id, to.s)
	if errors.Is(err, ctxdir.ErrInvalid) { // one store lies in the other
		return nil
	}
	p.whole, p.copied, p.copiedHere = err == nil, done.Messages, p.createL
	p.createL, p.createR = false, false
	if err != nil {
		return err
	}
	// What others remove from now on is no difference of two stores that never agreed, which would come back.
	heads, err := to.Heads(ctx, []HeadRequest{{ID: p.id}})
	if err == nil && heads[0].Err == nil {
		p.base = heads[0].copied()
	}
	return err
}

// copied is what both sides agree on when the context at the head is a copy.
func (h *Head) copied() *agreed {
	a := &agreed{Local: h.Commit, Remote: h.Commit, Members: h.Meta.members().sums()}
	for i := range h.Branches {
		b := &h.Branches[i]
		a.Lines = append(a.Lines, linePair{b.Name, b.Line(), b.Line(), b.Len()})
	}
	for _, r := range h.Changed {
		if r.Erased {
			a.Erased = append(a.Erased, r.ID)
		}
	}
	slices.SortFunc(a.Erased, compareIDs)
	return a
}

// done notes what both sides agree on now, and reports what happened.
func (s *session) done(p *plan) {
	r := p.synced
	r.Err = p.err
	if p.err == nil && !s.DryRun && !s.Heal && p.isComplete(s.Push, s.Pull) {
		switch {
		case p.remove != nil:
			delete(s.agreed.all, p.id)
		default:
			s.agreed.all[p.id] = p.agreement()
		}
	}
	if p.err != nil {
		s.total.Failed++
	} else if s.keep && !p.isComplete(false, true) {
		s.total.Kept++
	}
	if p.err != nil || s.Pull && !s.Heal || s.DryRun {
		s.total.Unconfirmed += int64(len(p.remote.erase))
	}
	if r.isEmpty() && p.err == nil {
		return
	}
	if p.err == nil {
		s.total.Contexts++
	}
	s.total.Messages += r.Pulled + r.Pushed
	if s.Report != nil {
		s.Report(r)
	}
}
