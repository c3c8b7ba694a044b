package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// Counter counts the calls of several contexts. A call that several of them record counts for the first one.
type Counter struct {
	seen    map[callKey]bool
	store   *ctxdir.Store           // nil if there is only one context
	parents map[uuid.UUID]uuid.UUID // of contexts
	index   Index                   // nil for none
}

// NewCounter returns a counter for the contexts of a store.
func NewCounter(s *ctxdir.Store) *Counter {
	return &Counter{seen: map[callKey]bool{}, store: s, parents: map[uuid.UUID]uuid.UUID{}}
}

// source passes the digests of all messages, each once, and calls end after each branch. With estimates, they have
// those; without, they may.
type source func(estimates bool, read func(*digested), end func()) error

// count yields the steps of a context.
func (s *scan) count(from source) error {
	s.totals = s.metadataTotals(s.c.Metadata())
	branches, err := s.c.Branches(s.ctx)
	if err != nil {
		return err
	}
	s.branches = branches
	err = from(false, s.message, s.flush)
	if err == nil && !s.stopped && s.steps == 0 {
		for _, p := range s.totals {
			s.emit(p)
		}
	}
	if err == nil && !s.stopped && !s.counted {
		input := int64(0)
		err = from(true, func(m *digested) { input = s.estimate(m, input) }, func() { input = 0 })
	}
	return err
}

// scan reads one context.
type scan struct {
	*Counter
	ctx     context.Context
	c       *ctxdir.Context
	yield   func(Step, error) bool
	model   string // of the context
	space   string // in which local keys are unique
	branch  string
	current bool // the index was brought up to date
	marks   map[string]*branchMarks

	branches []ctxdir.BranchInfo
	pending  []pendingStep
	totals   []pendingStep
	sums     record // of the conversation so far
	steps    int64  // yielded
	counted  bool   // a step had tokens
	stopped  bool   // the consumer wants no more
}

// digested is a message as a scan sees it.
type digested struct {
	id       uuid.UUID
	position int64
	digest
}

// pendingStep is a step whose record may be repeated with higher counts.
type pendingStep struct {
	key  callKey
	step Step
}

// maxPending bounds the steps that wait. Lines of one reply have few others between them.
const maxPending = 64

// mark is a place in a branch from which on prompt and model are others.
type mark struct {
	position int64
	prompt   uuid.UUID
	model    string
}

type branchMarks struct {
	from   *branchMarks // the branch that this one was forked from
	shared int64        // messages of that branch
	own    []mark
}

// at is the mark before a position.
func (b *branchMarks) at(position int64) mark {
	for b != nil {
		i, _ := slices.BinarySearchFunc(b.own, position, func(m mark, p int64) int { return cmp.Compare(m.position, p) })
		if i > 0 {
			return b.own[i-1]
		}
		b, position = b.from, min(position, b.shared)
	}
	return mark{}
}

func modelIn(m *ctxdir.Metadata) string { return transcript.ObjectOf(m.Config).Text("model_id") }

// scanned is the source that reads the messages.
func (s *scan) scanned(estimates bool, read func(*digested), end func()) error {
	return s.each(func(b *ctxdir.BranchInfo) error {
		branch, err := s.c.Branch(b.Name)
		if err != nil {
			return err
		}
		for m, err := range branch.Messages(s.ctx, b.Shared, ctxdir.End) {
			if err != nil {
				return err
			}
			if m.Unavailable != nil {
				continue
			}
			is := digested{id: m.ID, position: m.Position}
			if estimates {
				is.estimate(m)
			} else {
				is.digest = recordsAndPrompt(m, func() (json.RawMessage, error) { return m.Texts(s.ctx) })
			}
			if read(&is); s.stopped {
				return nil
			}
		}
		return nil
	}, end)
}

// each calls read for every branch, which reads the messages that no branch before has, and then end.
func (s *scan) each(read func(*ctxdir.BranchInfo) error, end func()) error {
	for i := range s.branches {
		b := &s.branches[i]
		s.branch = b.Name
		if s.marks[b.Name] == nil {
			s.marks[b.Name] = &branchMarks{from: s.marks[b.From], shared: b.Shared}
		}
		if err := read(b); err != nil || s.stopped {
			return err
		}
		if end(); s.stopped {
			return nil
		}
	}
	return nil
}

// message counts the records of a message.
func (s *scan) message(m *digested) {
	if m.prompt {
		s.mark(m.position, func(now *mark) { now.prompt = m.id })
	}
	if m.next != "" {
		s.mark(m.position, func(now *mark) { now.model = m.next })
	}
	for i := range m.records {
		s.add(m, i, &m.records[i])
	}
}

// mark begins another mark.
func (s *scan) mark(position int64, change func(*mark)) {
	b := s.marks[s.branch]
	now := b.at(position + 1)
	now.position = position
	change(&now)
	if last := len(b.own) - 1; last >= 0 && b.own[last].position == position {
		b.own[last] = now
		return
	}
	b.own = append(b.own, now)
}

// add adds the record number i of a message.
func (s *scan) add(m *digested, i int, r *record) {
	if r.sums {
		s.difference(r)
		if r.tokens.Total == 0 && r.cost == 0 {
			return
		}
	}
	p := s.pendingOf(m, i, r)
	if r.total {
		s.totals = append(s.totals, p)
		return
	}
	for i := range s.pending {
		if q := &s.pending[i]; q.key == p.key {
			if p.step.Total > q.step.Total {
				q.step.Tokens, q.step.Cost, q.step.Priced = p.step.Tokens, max(p.step.Cost, q.step.Cost), p.step.Priced || q.step.Priced
			}
			return
		}
	}
	if s.pending = append(s.pending, p); len(s.pending) > maxPending {
		first := s.pending[0]
		s.pending = s.pending[1:]
		s.emit(first)
	}
}

// pendingOf is the step of record i of a message.
func (s *scan) pendingOf(m *digested, i int, r *record) pendingStep {
	p := pendingStep{key: s.keyOf(m.id, i, r), step: s.step(r)}
	now := s.marks[s.branch].at(m.position + 1)
	p.step.Branch, p.step.Position, p.step.Message, p.step.Prompt, p.step.At = s.branch, m.position, m.id, now.prompt, m.at
	p.step.Model = cmp.Or(r.model, now.model, s.model)
	return p
}

func (s *scan) step(r *record) Step {
	return Step{Context: s.c.ID(), Model: cmp.Or(r.model, s.model), Calls: r.calls, Tokens: r.tokens, Cost: r.cost, Priced: r.priced}
}

// flush yields what waits.
func (s *scan) flush() {
	for len(s.pending) > 0 && !s.stopped {
		first := s.pending[0]
		s.pending = s.pending[1:]
		s.emit(first)
	}
}

// emit yields a step that was not yielded before.
func (s *scan) emit(p pendingStep) {
	s.steps++
	s.counted = s.counted || p.step.Total > 0
	if s.seen[p.key] {
		return
	}
	s.seen[p.key] = true
	s.stopped = !s.yield(p.step, nil)
}

// keyOf identifies the call of record i of a message.
func (s *scan) keyOf(id uuid.UUID, i int, r *record) callKey {
	switch {
	case r.key == callKey{}:
		return sumKey("message " + id.String() + " " + string(rune('0'+i)))
	case r.local:
		if s.space == "" {
			s.space = s.root(s.c.ID(), s.c.Metadata().ParentID).String()
		}
		return sumKey(s.space + " " + string(r.key[:]))
	}
	return r.key
}

// maxAncestors bounds a chain of parents, which may be a circle.
const maxAncestors = 64

// root is the first ancestor of a context that is in the store.
func (n *Counter) root(id, parent uuid.UUID) uuid.UUID {
	if n.store == nil {
		return id
	}
	n.parents[id] = parent
	for range maxAncestors {
		parent, known := n.parents[id]
		if !known {
			if c, err := n.store.Open(context.Background(), id); err == nil {
				parent = c.Metadata().ParentID
				_ = c.Close()
			}
			n.parents[id] = parent
		}
		if parent == uuid.Nil {
			break
		}
		id = parent
	}
	return id
}

// difference makes the sums of a conversation so far those of one call.
func (s *scan) difference(r *record) {
	now := *r
	r.tokens = r.tokens.minus(s.sums.tokens)
	r.cost = max(r.cost-s.sums.cost, 0)
	s.sums = now
}

// metadataTotals are the totals in the description that an import stored with a trajectory.
func (s *scan) metadataTotals(m *ctxdir.Metadata) []pendingStep {
	extra := transcript.ObjectOf(transcript.ObjectOf(transcript.ObjectOf(m.Extra)["import"])["extra"])
	r := statsRecord(transcript.ObjectOf(extra["info"]))
	if r == nil {
		return nil
	}
	p := pendingStep{key: s.keyOf(s.c.ID(), 0, r), step: s.step(r)}
	if p.step.At = m.UpdatedAt; p.step.At.IsZero() {
		p.step.At = m.CreatedAt
	}
	p.step.Branch = m.ActiveBranch
	return []pendingStep{p}
}

// estimate yields the step of a reply in a context that records no tokens. input is about the tokens since the reply
// before; estimate returns those since the last one.
func (s *scan) estimate(m *digested, input int64) int64 {
	if !m.reply {
		return plus(input, plus(m.said, m.heard))
	}
	r := record{calls: 1, tokens: Tokens{Input: input, Output: m.said, Total: plus(input, m.said), fresh: input, said: m.said}}
	if r.tokens.Total > 0 {
		p := s.pendingOf(m, 0, &r)
		p.step.Estimated = true
		s.emit(p)
	}
	return m.heard
}
