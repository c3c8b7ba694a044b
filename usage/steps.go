package usage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/chat"
	"github.com/google/uuid"
)

// Steps yields the calls that a context records, each once, in the order of its branches. If it records no tokens, the
// steps are estimates from the texts: the input of a step is what came since the step before, and the output is the
// reply. A conversation that is sent again with each call counts once. Steps reads each message once or, for estimates,
// twice, but no payload of a kilobyte or more. It keeps the id and the beginning of each prompt, and 16 bytes for each
// step.
func Steps(ctx context.Context, c *ctxdir.Context) iter.Seq2[Step, error] {
	return NewCounter(nil).Steps(ctx, c)
}

// callKey identifies a call wherever it is recorded.
type callKey [16]byte

// Counter counts the calls of several contexts. A call that several of them record counts for the first one.
type Counter struct {
	seen    map[callKey]bool
	store   *ctxdir.Store           // nil if there is only one context
	parents map[uuid.UUID]uuid.UUID // of contexts
}

// NewCounter returns a counter for the contexts of a store.
func NewCounter(s *ctxdir.Store) *Counter {
	return &Counter{seen: map[callKey]bool{}, store: s, parents: map[uuid.UUID]uuid.UUID{}}
}

// Steps yields the calls of a context, as the function Steps does, without those that the counter has yielded before.
func (n *Counter) Steps(ctx context.Context, c *ctxdir.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		meta := c.Metadata()
		s := &scan{Counter: n, ctx: ctx, c: c, yield: yield, marks: map[string]*branchMarks{}, model: modelIn(meta)}
		s.totals = s.metadataTotals(meta)
		s.each(s.message, s.flush)
		if !s.stopped && s.steps == 0 {
			for _, p := range s.totals {
				s.emit(p)
			}
		}
		if !s.stopped && !s.counted {
			s.estimate()
		}
	}
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
	marks   map[string]*branchMarks
	pending []pendingStep
	totals  []pendingStep
	sums    record // of the conversation so far
	steps   int64  // yielded
	counted bool   // a step had tokens
	stopped bool
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
	text     string
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

func modelIn(m *ctxdir.Metadata) string { return chat.ObjectOf(m.Config).Text("model_id") }

// each passes every message to read, once, and calls end after each branch.
func (s *scan) each(read func(*ctxdir.Message), end func()) {
	branches, err := s.c.Branches(s.ctx)
	if err != nil {
		s.fail(err)
		return
	}
	for _, info := range branches {
		b, err := s.c.Branch(info.Name)
		if err != nil {
			s.fail(err)
			return
		}
		s.branch = info.Name
		if s.marks[info.Name] == nil {
			s.marks[info.Name] = &branchMarks{from: s.marks[info.From], shared: info.Shared}
		}
		for m, err := range b.Messages(s.ctx, info.Shared, ctxdir.End) {
			if err != nil {
				s.fail(err)
				return
			}
			if m.Unavailable == nil {
				read(m)
			}
			if s.stopped {
				return
			}
		}
		if end(); s.stopped {
			return
		}
	}
}

func (s *scan) fail(err error) {
	s.stopped = true
	s.yield(Step{Context: s.c.ID()}, err)
}

// message reads the records of a message.
func (s *scan) message(m *ctxdir.Message) {
	s.prompt(m)
	if !mayRecord(m.Stored) {
		return
	}
	body, err := s.textsOf(m)
	if err != nil {
		s.fail(err)
		return
	}
	records, model := recordsOf(body)
	if model != "" {
		s.mark(m.Position, func(now *mark) { now.model = model })
	}
	for i := range records {
		s.add(m, i, &records[i])
	}
}

// maxShort bounds the texts that records need, in bytes. Only a store with a low threshold has them in blobs.
const maxShort = 1 << 10

// textsOf is a message with its short texts in their places.
func (s *scan) textsOf(m *ctxdir.Message) (json.RawMessage, error) {
	payloads, err := m.Payloads()
	if err != nil || !slices.ContainsFunc(payloads, func(p ctxdir.Payload) bool { return !p.Binary && p.Size < maxShort }) {
		return m.Stored, nil
	}
	texts, err := m.Texts(s.ctx)
	if s.ctx.Err() != nil {
		return nil, s.ctx.Err()
	}
	if len(texts) == 0 || err != nil {
		return m.Stored, nil
	}
	return texts, nil
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

// maxPrompt bounds the beginning of a prompt, in bytes.
const maxPrompt = 120

// toolResult is in most messages that have the role of a user and are not a person's. It saves parsing them.
var toolResult = []byte(`"type":"tool_result"`)

// prompt notes a message of a person.
func (s *scan) prompt(m *ctxdir.Message) {
	if chat.Voice(m.Role) != chat.User || bytes.Contains(m.Stored, toolResult) || chat.Bookkeeping(m.Stored) {
		return
	}
	for _, p := range chat.Parts(m.Stored) {
		text := strings.TrimSpace(p.Text)
		if p.Kind != chat.Text || text == "" {
			continue
		}
		text = strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxPrompt)], ""))
		s.mark(m.Position, func(now *mark) { now.prompt, now.text = m.ID, text })
		return
	}
}

// add adds the record number i of a message.
func (s *scan) add(m *ctxdir.Message, i int, r *record) {
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
func (s *scan) pendingOf(m *ctxdir.Message, i int, r *record) pendingStep {
	p := pendingStep{key: s.keyOf(m.ID, i, r), step: s.step(r)}
	now := s.marks[s.branch].at(m.Position + 1)
	p.step.Branch, p.step.Position, p.step.Message, p.step.Prompt, p.step.Text = s.branch, m.Position, m.ID, now.prompt, now.text
	p.step.Model = cmp.Or(r.model, now.model, s.model)
	if p.step.At = m.CreatedAt; p.step.At.IsZero() {
		p.step.At = m.StoredAt
	}
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
func (s *scan) keyOf(id uuid.UUID, i int, r *record) (key callKey) {
	text := r.key
	switch {
	case text == "":
		text = "message " + id.String() + " " + string(rune('0'+i))
	case r.local:
		if s.space == "" {
			s.space = s.root(s.c.ID(), s.c.Metadata().ParentID).String()
		}
		text = s.space + " " + text
	}
	sum := sha256.Sum256([]byte(text))
	copy(key[:], sum[:])
	return key
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
			if c, err := n.store.Context(context.Background(), id); err == nil {
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
	extra := chat.ObjectOf(chat.ObjectOf(chat.ObjectOf(m.Extra)["import"])["extra"])
	r := statsRecord(chat.ObjectOf(extra["info"]))
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
