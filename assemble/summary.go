package assemble

import (
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/transcript"
)

const (
	minSummary = 48 // tokens
	maxSources = 40 // messages
	// perToken is how many tokens of passages are summarised in one token.
	perToken = 8
)

// tries are passages that do not fit, before the search for others ends.
const tries = 16

// addSummary adds a summary of the best of some passages, with at most so many tokens. Of tools, code and files there
// is none. It reports false if there is not more to summarise than the summary may have.
func (b *builder) addSummary(rest []Item, most int) (bool, error) {
	if most < minSummary {
		return false, nil
	}
	it := Item{Kind: Summary, Strategy: SummariseRemote, Context: b.r.Context, Title: b.title, Position: -1}
	texts, size := b.sources(&it, rest, most)
	room := most - b.r.Tokens.Count(headingOf(&it)) - b.count(&it)
	if size <= most || room <= 0 {
		return false, nil
	}
	by, err := compress.New(b.r.Compression, b.r.Endpoint, func(text string) int { return b.count(&Item{Kind: Summary, Text: text}) })
	if err != nil {
		return false, err
	}
	switch c := by.(type) {
	case compress.Local:
		it.Strategy = SummariseLocal
	case compress.Hybrid:
		c.Failed = func(err error) { b.remoteErr, it.Strategy = err, SummariseLocal }
		by = c
	}
	if it.Text, err = by.Summary(b.ctx, texts, room); err != nil || it.Text == "" {
		return false, err
	}
	it.Tokens, it.Why = b.count(&it), "made from "+it.sources()
	b.items = append(b.items, it)
	for i := range rest {
		if slices.ContainsFunc(it.From, func(s Source) bool { return s.ID == rest[i].ID }) && rest[i].says() != "" {
			rest[i].reason = "in the summary"
		}
	}
	return true, nil
}

// sources chooses the passages for a summary: the best ones of prose, as far as their list takes a third of the
// summary. It returns their texts in the order of the conversation, and about how many tokens they have.
func (b *builder) sources(it *Item, rest []Item, most int) (texts []string, size int) {
	var chosen []Item
	failed := 0
	for i := range rest {
		p := rest[i]
		if p.Text = p.says(); p.Text == "" {
			continue
		}
		before, tokens := it.From, compress.Estimate(p.Text)
		if size+tokens > perToken*most {
			break
		}
		it.add(Source{p.Context, p.Branch, p.Position, p.ID})
		if len(it.From) > maxSources || b.r.Tokens.Count(it.sources()) > most/3 {
			it.From = before
			if failed++; failed == tries {
				break
			}
			continue
		}
		size += tokens
		chosen = append(chosen, p)
	}
	it.From = nil
	for _, p := range merge(chosen) {
		texts = append(texts, p.Text)
		it.From = append(it.From, Source{p.Context, p.Branch, p.Position, p.ID})
	}
	return texts, size
}

// add adds a source of a summary after those of the same branch.
func (it *Item) add(s Source) {
	at := len(it.From)
	for i, other := range it.From {
		if other == s {
			return
		}
		if other.Context == s.Context && other.Branch == s.Branch {
			at = i + 1
		}
	}
	it.From = slices.Insert(slices.Clone(it.From), at, s)
}

// says returns the prose of a passage of a person or a model.
func (it *Item) says() string {
	if it.Role != transcript.User && it.Role != transcript.Assistant {
		return ""
	}
	if len(it.sections) == 0 {
		if it.prose {
			return it.Text
		}
		return ""
	}
	var texts []string
	for _, s := range it.sections {
		if s.prose {
			texts = append(texts, s.text)
		}
	}
	return shorten(strings.Join(texts, "\n"), maxShown)
}
