package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
)

const (
	maxMoments        = 12 // in a text
	maxMomentContexts = 20 // of which moments are read
)

// strategies by the type of a moment.
var strategies = map[moment.Type]string{
	moment.Decision: ExtractDecisions, moment.Pattern: ExtractPatterns, moment.Solution: ExtractSolutions, moment.Context: ExtractContext,
}

// addMoments adds the moments that matter most for the query: those with its terms first, by relevance.
func (b *builder) addMoments() error {
	var all []Item
	for _, id := range b.momentContexts() {
		err := b.store.Use(b.ctx, id, func(c *ctxdir.Context) error {
			defer b.endDrawing(c)
			found, err := b.momentsOf(c)
			all = append(all, found...)
			return err
		})
		if err != nil && !errors.Is(err, ctxdir.ErrNotExist) {
			return err
		}
	}
	slices.SortStableFunc(all, func(x, y Item) int { return cmp.Compare(y.Score, x.Score) })
	room := b.budget(b.r.Weights.Moments)
	for i := range all[:min(len(all), maxMoments)] {
		if b.take(&all[i], &room) {
			b.seen[hashOf(all[i].Text)] = true
		}
	}
	for i := maxMoments; i < len(all); i++ {
		b.leaveOut(&all[i], "ranked lower")
	}
	return nil
}

// momentContexts returns the context of the request, and those of the best messages.
func (b *builder) momentContexts() []uuid.UUID {
	ids := []uuid.UUID{b.r.Context}
	for i := range b.ranking.Messages {
		if id := b.ranking.Messages[i].Context; len(ids) < maxMomentContexts && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// momentsOf returns the moments of a context. With a branch in the request, their sources must be on it.
func (b *builder) momentsOf(c *ctxdir.Context) (all []Item, err error) {
	m := c.Metadata()
	at := slices.IndexFunc(m.Branches, func(b ctxdir.BranchMetadata) bool { return moment.BranchKind(b.Extra) == moment.Kind })
	if at < 0 {
		return nil, nil
	}
	branch, err := c.Branch(m.Branches[at].Name)
	if err != nil {
		return nil, err
	}
	for found, err := range moment.All(b.ctx, c) {
		if err != nil {
			return nil, err
		}
		stored, err := branch.Message(b.ctx, found.ID)
		if errors.Is(err, ctxdir.ErrNotExist) || err == nil && !b.isOnBranch(found.From) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b.draw(c.ID(), stored)
		text := strings.Join(strings.Fields(found.Content), " ")
		score, why := b.score(text, b.ranking.Weights)
		if len(b.queryTerms()) == 0 {
			why = ""
		}
		all = append(all, Item{
			Kind: Moment, Strategy: strategies[found.Type], Context: c.ID(), Title: m.Title, Branch: branch.Name(), Position: stored.Position,
			ID: found.ID, Role: string(found.Type), At: found.At, Text: cutAt(text, maxMoment), Score: found.Relevance * (1 + score),
			Why: strings.TrimSuffix(fmt.Sprintf("relevance %.2f, %s", found.Relevance, why), ", "), line: stored.Line,
		})
	}
	return all, nil
}

// maxMoment bounds the text of a moment, in bytes.
const maxMoment = 600

// isOnBranch reports whether the branch of the request shows one of some messages.
func (b *builder) isOnBranch(from []uuid.UUID) bool {
	if b.r.Branch == "" || len(from) == 0 {
		return true
	}
	return slices.ContainsFunc(from, func(id uuid.UUID) bool {
		_, err := b.branch.Message(b.ctx, id)
		return err == nil
	})
}
