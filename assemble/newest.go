package assemble

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/reference"
)

// Lengths in bytes. Of a longer text, the beginning and the end are shown.
const (
	maxShown = 1200 // of one of the newest messages
	maxWork  = 300  // of a thought, a call or its result in it
	maxGiven = 8000 // of a pinned message
)

// maxNewest bounds the newest messages, and those that fill what is left of the budget.
const maxNewest = 4000

// addGiven adds the instructions of the workspace, the pinned messages, and the system prompt.
func (b *builder) addGiven() error {
	room := b.budget(b.r.Weights.System)
	b.takeText(Item{Kind: Instructions, Text: b.instructions, Why: "the instructions of the workspace"}, &room)
	if b.c == nil {
		return nil
	}
	for _, id := range distinct(b.r.Pinned) {
		m, err := b.branch.Message(b.ctx, id)
		if err != nil {
			return err
		}
		if it, ok := b.messageItem(m, b.branch.Name(), maxGiven); ok {
			it.Kind, it.Strategy, it.Why = Pinned, Given, "pinned"
			b.take(&it, &room)
		}
	}
	prompt, err := b.branch.SystemPrompt(b.ctx)
	if err != nil {
		return err
	}
	b.takeText(Item{
		Kind: System, Context: b.r.Context, Title: b.title, Branch: b.branch.Name(), Text: textOf(prompt), Why: "the system prompt",
	}, &room)
	return nil
}

// takeText adds what is given and is not a message, with its middle left out if there is not enough room for it.
func (b *builder) takeText(it Item, room *int) {
	text := it.Text
	if text == "" {
		return
	}
	it.Strategy, it.Position, it.Role, it.Text = Given, -1, "system", shorten(text, max(4**room, 4))
	for it.Tokens = b.count(&it); it.Tokens > *room && len(it.Text) > 64; it.Tokens = b.count(&it) {
		it.Text = shorten(text, len(it.Text)*3/4)
	}
	b.take(&it, room)
}

// take adds an item if there is room for it.
func (b *builder) take(it *Item, room *int) bool {
	if it.Tokens == 0 {
		it.Tokens = b.count(it)
	}
	if it.Tokens > *room {
		b.leaveOut(it, "over the budget")
		return false
	}
	*room -= it.Tokens
	it.priority = len(b.items)
	b.items = append(b.items, *it)
	return true
}

// addNewest adds the newest messages of the branch.
func (b *builder) addNewest() error {
	share := b.r.Weights.Newest
	room := b.budget(share)
	end, err := b.branch.Len(b.ctx)
	if err != nil {
		return err
	}
	back, err := b.backwards(end, room)
	if err != nil {
		return err
	}
	// The window begins where it holds between half and all of its room, and of the messages that are more than work with
	// tools. Of these places, it takes the one whose position is divisible by the largest power of two: it stays the same
	// while the branch grows, and with it the beginning of the text, which providers cache.
	most := max(b.r.MaxTokens/max(b.r.Weights.PerNewest, 1), 8)
	earliest, latest, sum, talk := end, int64(-1), 0, 0
	for i := range back {
		if back[i].speaks() {
			talk++
		}
		if sum += back[i].Tokens; sum > room || talk > most {
			break
		}
		earliest = back[i].Position
		if latest < 0 && (2*sum >= room || 2*talk >= most) {
			latest = earliest
		}
	}
	if talk <= most && sum <= room { // the branch has no more
		earliest = 0
	}
	start := anchor(earliest, max(latest, earliest))
	for i := len(back) - 1; i >= 0; i-- {
		if it := &back[i]; it.Position >= start {
			it.Why = fmt.Sprintf("one of the newest messages, from position %d on", start)
			b.once(it)
			b.take(it, &room)
			b.shown[address{it.Context, it.line, it.Position}] = !it.cut
			b.see(it)
			b.locate(it.message, *it)
		}
	}
	return nil
}

// once replaces the results of tools in an item that an earlier one has too.
func (b *builder) once(it *Item) {
	repeated := false
	for i := range it.sections {
		s := &it.sections[i]
		if !s.result || len(s.text) < passageLength/4 {
			continue
		}
		if h := hashOf(s.text); b.seen[h] {
			s.text, repeated = "[result] (the same as before)", true
		} else {
			b.seen[h] = true
		}
	}
	if repeated {
		it.setText(maxShown)
		it.Tokens = b.count(it)
	}
}

// setText sets the text of an item from its sections, in at most so many bytes.
func (it *Item) setText(most int) {
	var texts []string
	whole := 0
	for _, s := range it.sections {
		whole += len(s.text) + 1
		if s.work && most == maxShown {
			s.text = shorten(s.text, maxWork)
		}
		texts = append(texts, s.text)
	}
	it.Text = shorten(strings.Join(texts, "\n"), most)
	it.cut = len(it.Text) < whole-1
}

// speaks reports whether a message is more than thoughts, calls and their results.
func (it *Item) speaks() bool {
	return slices.ContainsFunc(it.sections, func(s section) bool { return !s.work })
}

// anchor returns the number in [from, to] that is divisible by the largest power of two.
func anchor(from, to int64) int64 {
	if from <= 0 || from >= to {
		return max(from, 0)
	}
	shift := bits.Len64(uint64((from-1)^to)) - 1
	return to >> shift << shift
}

// backwards returns the newest messages before a position, the newest first, until they fill the room.
func (b *builder) backwards(end int64, room int) (back []Item, err error) {
	block := int64(16)
	for to := end; to > 0 && room >= 0 && end-to < maxNewest; {
		from := max(to-block, 0)
		all, err := b.branch.Range(b.ctx, from, to)
		if err != nil {
			return nil, err
		}
		for i := len(all) - 1; i >= 0 && room >= 0; i-- {
			if it, ok := b.messageItem(all[i], b.branch.Name(), maxShown); ok {
				it.Kind, it.Strategy = Newest, Recent
				it.Tokens = b.count(&it)
				room -= it.Tokens
				back = append(back, it)
			}
		}
		to, block = from, min(2*block, 256)
	}
	return back, nil
}

// messageItem returns an item for a message, of at most so many bytes. ok is false for a record of bookkeeping.
func (b *builder) messageItem(m *ctxdir.Message, branch string, most int) (it Item, ok bool) {
	b.draw(b.c.ID(), m)
	voice, all, ok := b.read(m)
	if !ok {
		return it, false
	}
	it = Item{
		Context: b.c.ID(), Title: b.title, Branch: branch, Position: m.Position, ID: m.ID, Role: voice, At: timeOf(m),
		line: m.Line, sections: all, message: m,
	}
	it.setText(most)
	return it, true
}

// shorten cuts the middle out of a text that is longer than so many bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	tail := most / 4
	head := strings.ToValidUTF8(text[:max(most-tail-8, 0)], "")
	return head + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// see notes the passages of an item, so that they come once.
func (b *builder) see(it *Item) {
	for _, s := range it.sections {
		if it.cut {
			break
		}
		for _, p := range passages(s.text) {
			b.seen[hashOf(p)] = true
		}
	}
}

func hashOf(text string) uint64 { return xxhash.Sum64String(strings.TrimSpace(text)) }

// locate notes the references that are stored with a message.
func (b *builder) locate(m *ctxdir.Message, it Item) {
	if b.r.Root == "" || len(m.References) == 0 {
		return
	}
	refs, _ := reference.Stored(m) // an invalid one is left out
	for _, ref := range refs {
		b.references = append(b.references, located{ref, it})
	}
}
