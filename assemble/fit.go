package assemble

import (
	"slices"

	"github.com/google/uuid"
)

// fit takes passages until the budget is full, and drops items until the text is within it.
func (b *builder) fit() (*Assembly, error) {
	const heads = 40 // tokens of the headings, about
	room := b.r.MaxTokens - min(heads, b.r.MaxTokens/10)
	for i := range b.items {
		room -= b.items[i].Tokens
	}
	chosen, err := b.choosePassages(room)
	if err != nil {
		return nil, err
	}
	f := b.r.Format
	for {
		items := append(slices.Clone(b.items), merge(chosen)...)
		text := f.render(items)
		n := b.r.Tokens.Count(text)
		if n <= b.r.MaxTokens {
			return b.assembly(items, text, n), nil
		}
		if len(items) == 0 {
			text = f.nothing(b.r.Tokens, b.r.MaxTokens)
			return b.assembly(nil, text, b.r.Tokens.Count(text)), nil
		}
		for over := n - b.r.MaxTokens; over > 0 && len(chosen)+len(b.items) > 0; {
			if last := len(chosen) - 1; last >= 0 {
				over -= chosen[last].Tokens
				b.leaveOut(&chosen[last], "over the budget")
				chosen = chosen[:last]
				continue
			}
			over -= b.drop()
		}
	}
}

// choosePassages takes passages from the pool, and adds a summary of others if the request wants one.
func (b *builder) choosePassages(room int) ([]Item, error) {
	chosen, rest := b.choose(room)
	if b.r.Compression != "" && len(rest) > 0 {
		// The summary is not shortened later, so its room is exact: without the other items and their headings.
		room = b.r.MaxTokens - b.r.Tokens.Count(b.r.Format.render(b.items)) - b.r.Tokens.Count(headingOf(&rest[0])) - b.r.MaxTokens/100
		share := min(b.budget(b.r.Weights.Summary), room)
		fewer, more := b.choose(room - share)
		added, err := b.addSummary(more, share)
		if err != nil {
			return nil, err
		}
		if added {
			chosen, rest = fewer, more
		}
	}
	for i := range rest {
		b.leaveOut(&rest[i], rest[i].reason)
	}
	return chosen, nil
}

// choose takes passages from the pool, best first, that fit into the room, and returns the rest, too.
func (b *builder) choose(room int) (chosen, rest []Item) {
	failed := 0
	taken := map[uuid.UUID]int{} // bytes of each message
	for i := range b.pool {
		it := &b.pool[i]
		if n := taken[it.ID] + len(it.Text); n > b.r.PerText && n > len(it.Text) && b.r.PerText > 0 {
			it.reason = "enough of the message"
			rest = append(rest, *it)
			continue
		}
		if it.reason = "ranked lower"; failed >= tries || room <= 0 {
			rest = append(rest, *it)
			continue
		}
		if it.Tokens == 0 {
			it.Tokens = b.count(it)
		}
		if it.reason = "over the budget"; it.Tokens > room {
			failed++
			rest = append(rest, *it)
			continue
		}
		room -= it.Tokens
		taken[it.ID] += len(it.Text)
		chosen = append(chosen, *it)
	}
	return chosen, rest
}

// drop removes the item that matters least, and returns its tokens: the summary, code and files from the last one, then
// the oldest of the newest messages, then the others from the last one.
func (b *builder) drop() int {
	at := len(b.items) - 1
	for i := range b.items {
		if b.items[i].Kind == Newest {
			at = i
			break
		}
	}
	for i := range b.items {
		if k := b.items[i].Kind; k == Code || k == File || k == Summary {
			at = i
		}
	}
	n := max(b.items[at].Tokens, 1)
	b.leaveOut(&b.items[at], "over the budget")
	b.items = slices.Delete(b.items, at, at+1)
	return n
}

func (b *builder) assembly(items []Item, text string, tokens int) *Assembly {
	a := &Assembly{
		Text: text, Items: items, Tokens: tokens, MaxTokens: b.r.MaxTokens, Tokenizer: b.r.Tokens.Name(), LeftOut: b.left, Behind: b.behind,
		RemoteErr: b.remoteErr,
	}
	for i := range items {
		it := &items[i]
		it.sections, it.message = nil, nil
		if !b.r.Explain {
			it.Why = ""
		}
		if !slices.Contains(a.Strategies, it.Strategy) {
			a.Strategies = append(a.Strategies, it.Strategy)
		}
	}
	if len(b.left) > 0 || tokens > 0 {
		a.Strategies = append(a.Strategies, Fit)
	}
	return a
}
