package assemble

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

const (
	maxRanked     = 400     // messages whose neighbours count
	maxCandidates = 2 << 20 // bytes of text that are cut into passages
	// tokensPerCandidate is the budget for which one message is read.
	tokensPerCandidate = 32
)

// candidate is a message that may have passages.
type candidate struct {
	address
	branches     []string
	title        string
	score, dated float64 // with neighbours · of its date alone
}

// rank asks the index for the messages that have terms of the query.
func (b *builder) rank() (err error) {
	q := search.RankQuery{Terms: b.queryTerms(), Dates: datesIn(b.r.Query), Branch: b.r.Branch, Labels: b.r.Labels, Limit: maxRanked}
	q.Contexts, q.Except, q.Speech = b.r.Contexts, b.r.Except, b.r.Speech
	if b.isOne() {
		q.Contexts = []uuid.UUID{b.r.Context}
	}
	b.ranking = &search.Ranking{}
	if len(q.Terms)+len(q.Dates) > 0 {
		b.ranking, err = b.x.Rank(b.ctx, q)
	}
	return err
}

// addPassages fills the pool of passages, best first.
func (b *builder) addPassages() error {
	all := spread(b.ranking.Messages, b.r.Weights.Neighbours)
	all = all[:min(len(all), max(b.r.MaxTokens/tokensPerCandidate, 16))]
	if err := b.cutPassages(all, b.ranking.Weights); err != nil {
		return err
	}
	slices.SortFunc(b.pool, func(x, y Item) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), strings.Compare(x.ID.String(), y.ID.String()), cmp.Compare(x.order, y.order))
	})
	b.pool = slices.DeleteFunc(b.pool, func(it Item) bool {
		h := hashOf(it.Text)
		repeated := b.seen[h] && len(it.Text) >= passageLength/8
		b.seen[h] = true
		return repeated
	})
	return nil
}

// spread adds to each message a part of the scores of its neighbours, and returns the messages, best first.
func spread(ranked []search.Ranked, neighbours []float64) (all []candidate) {
	at := map[address]int{}
	get := func(r *search.Ranked, position int64) *candidate {
		a := address{r.Context, r.Line, position}
		i, ok := at[a]
		if !ok {
			i = len(all)
			at[a] = i
			all = append(all, candidate{address: a, branches: r.Branches, title: r.Title})
		}
		return &all[i]
	}
	for i := range ranked {
		r := &ranked[i]
		own := get(r, r.Position)
		own.score += r.Score
		own.dated, own.branches = r.Dated, r.Branches
		for d, w := range neighbours {
			get(r, r.Position+int64(d)+1).score += w * r.Score
			if before := r.Position - int64(d) - 1; before >= 0 {
				get(r, before).score += w * r.Score
			}
		}
	}
	slices.SortFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.score, x.score), slices.Compare(x.context[:], y.context[:]), slices.Compare(x.line[:], y.line[:]),
			cmp.Compare(x.position, y.position))
	})
	return all
}

// cutPassages reads candidates, and adds their passages to the pool.
func (b *builder) cutPassages(all []candidate, weights map[string]float64) error {
	by := map[uuid.UUID][]*candidate{}
	var order []uuid.UUID
	for i := range all {
		c := &all[i]
		if by[c.context] == nil {
			order = append(order, c.context)
		}
		by[c.context] = append(by[c.context], c)
	}
	left := maxCandidates
	for _, id := range order {
		err := b.store.Use(b.ctx, id, func(c *ctxdir.Context) error {
			defer b.endDrawing(c)
			return b.cutContext(c, by[id], weights, &left)
		})
		if err != nil && !errors.Is(err, ctxdir.ErrNotExist) {
			return err
		}
	}
	return nil
}

// cutContext reads the candidates of one context, those at neighbouring positions at once.
func (b *builder) cutContext(c *ctxdir.Context, all []*candidate, weights map[string]float64, left *int) error {
	prefer := func(branches []string) string {
		if c.ID() == b.r.Context {
			return b.branchOf(branches)
		}
		return preferred(c, branches)
	}
	slices.SortFunc(all, func(x, y *candidate) int {
		return cmp.Or(strings.Compare(prefer(x.branches), prefer(y.branches)), cmp.Compare(x.position, y.position))
	})
	for len(all) > 0 && *left > 0 {
		name, n := prefer(all[0].branches), 1
		for n < len(all) && prefer(all[n].branches) == name && all[n].position-all[n-1].position <= 2 && n < 64 {
			n++
		}
		branch, err := c.Branch(name)
		if errors.Is(err, ctxdir.ErrNotExist) { // it was renamed meanwhile
			all = all[n:]
			continue
		}
		if err != nil {
			return err
		}
		messages, err := branch.Range(b.ctx, all[0].position, all[n-1].position+1)
		if err != nil {
			return err
		}
		for _, r := range b.readAll(messages, all[:n]) {
			b.cutMessage(&r, name, weights, left)
		}
		all = all[n:]
	}
	return b.ctx.Err()
}

// candidateText is what a candidate says.
type candidateText struct {
	m        *ctxdir.Message
	x        *candidate
	voice    string
	sections []section
	ok       bool
}

// readAll reads what candidates say, several at the same time.
func (b *builder) readAll(messages []*ctxdir.Message, all []*candidate) (texts []candidateText) {
	for _, m := range messages {
		for _, x := range all {
			if x.position == m.Position && x.line == m.Line && !b.shown[x.address] {
				texts = append(texts, candidateText{m: m, x: x})
				b.draw(x.context, m)
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(4)
	for i := range texts {
		group.Go(func() error {
			t := &texts[i]
			t.voice, t.sections, t.ok = b.read(t.m)
			return nil
		})
	}
	_ = group.Wait() // a text that cannot be read is not ok
	return texts
}

// cutMessage adds the passages of a message to the pool.
func (b *builder) cutMessage(t *candidateText, branch string, weights map[string]float64, left *int) {
	if !t.ok {
		return
	}
	m, x, voice := t.m, t.x, t.voice
	var all []string
	prose := map[int]bool{}
	for _, s := range t.sections {
		if s.work && b.r.Speech {
			continue
		}
		for _, p := range passages(s.text) {
			prose[len(all)] = s.prose
			all = append(all, p)
		}
	}
	// The longer a message is, the less its score says about one of its passages.
	of := b.r.Weights.Message * x.score / math.Sqrt(float64(len(all)))
	var first Item
	for order, text := range all {
		*left -= len(text)
		score, found := b.score(text, weights)
		b.pool = append(b.pool, Item{
			Kind: Passage, Strategy: Rank, Context: x.context, Title: x.title, Branch: branch, Position: m.Position, ID: m.ID, Role: voice,
			At: timeOf(m), Text: text, Score: score + x.dated + of, Why: found, line: x.line, order: order, prose: prose[order],
		})
		if it := &b.pool[len(b.pool)-1]; order == 0 || it.Score > first.Score {
			first = *it
		}
	}
	b.locate(m, first)
}

// fill adds older messages to the pool, the newest ones first, if it has less than the budget.
func (b *builder) fill() error {
	room := b.r.MaxTokens
	for i := range b.items {
		room -= b.items[i].Tokens
	}
	for i := range b.pool {
		room -= len(b.pool[i].Text)/3 + 4
	}
	if room <= 0 {
		return nil
	}
	end, err := b.branch.Len(b.ctx)
	if err != nil {
		return err
	}
	for i := range b.items {
		if it := &b.items[i]; it.Kind == Newest {
			end = min(end, it.Position)
		}
	}
	if room *= 2; b.r.Compression != "" {
		room += perToken * b.budget(b.r.Weights.Summary)
	}
	back, err := b.backwards(end, room)
	if err != nil {
		return err
	}
	pooled := map[uuid.UUID]bool{}
	for i := range b.pool {
		pooled[b.pool[i].ID] = true
	}
	for i := range back {
		it := &back[i]
		b.once(it)
		if h := hashOf(it.Text); pooled[it.ID] || b.seen[h] {
			continue
		}
		it.Kind, it.Strategy, it.Why = Passage, Recent, "fills what is left"
		b.pool = append(b.pool, *it)
	}
	return nil
}
