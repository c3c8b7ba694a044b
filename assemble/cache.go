package assemble

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/answers"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/workspace"
	"github.com/google/uuid"
)

// question is all that an assembly depends on beside the commits, the message files and the index.
type question struct {
	Program      string // another one may assemble another text
	Request      Request
	Tokenizer    string
	URL, Model   string // of the endpoint
	Instructions string
}

// recall returns the assembly of an earlier call with the same request, nil if there is none that still counts.
// Otherwise it prepares the builder for keep.
//
// Order: the cache is open before the index is up to date, and the index tells the commits before a message is read. So
// an answer is never older than its commits say, and a removal in between makes keep fail.
func (b *builder) recall(cacheSize int64) (*Assembly, error) {
	// A removal of messages removes the answers.
	_, derived := b.store.Derived(answers.View, nil)
	if !errors.Is(derived, errors.ErrUnsupported) { // a store that is not in a folder has no workspace
		var err error
		if b.instructions, err = workspace.ReadInstructions(b.store); err != nil {
			return nil, err
		}
	}
	q := b.question()
	if q != nil && derived == nil {
		b.cache = answers.Open(b.store.Info().Path, cacheSize)
	}
	if err := b.update(); err != nil || b.cache == nil {
		return nil, err
	}
	of := uuid.Nil
	if b.isOne() {
		of = b.r.Context
	}
	commits, ok, err := b.x.Commits(b.ctx, of)
	if err != nil {
		return nil, err
	}
	b.commits, b.keeps = commits, ok && b.behind == 0
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	b.asked = sha256.Sum256(text)
	if !b.keeps {
		return nil, nil
	}
	a := &Assembly{}
	if kept := b.cache.Get(b.asked, b.commits); kept == nil || json.Unmarshal(kept, a) != nil {
		return nil, nil
	}
	return a, nil
}

// update brings the index up to date.
func (b *builder) update() error {
	if b.isOne() {
		return b.x.UpdateContext(b.ctx, b.r.Context)
	}
	done, err := b.x.Update(b.ctx, search.UpdateOptions{})
	b.behind = done.Behind
	return errors.Join(err, b.ctx.Err())
}

// question returns what the request asks, nil if the answer cannot be kept: because it depends on files outside the
// store or on a tokenizer of the program.
func (b *builder) question() *question {
	if b.r.Root != "" || b.r.Tokens != O200k() && b.r.Tokens != Estimate() {
		return nil
	}
	q := &question{Request: *b.r, Tokenizer: b.r.Tokens.Name(), Instructions: b.instructions}
	if info, ok := debug.ReadBuildInfo(); ok {
		q.Program = info.String()
	}
	if e := b.r.Endpoint; e != nil {
		q.URL, q.Model = e.URL, e.Model
	}
	return q
}

// draw notes that the assembly was made from a message. An assembly is not kept if it was made from a message that may
// be read again later, such as a damaged one after a repair, or one that was edited by hand.
func (b *builder) draw(context uuid.UUID, m *ctxdir.Message) {
	if m.Edited || m.Unavailable != nil && !errors.Is(m.Unavailable, ctxdir.ErrErased) {
		b.keeps = false
	}
	if b.cache != nil {
		b.drawn[context] = append(b.drawn[context], source{m.Line, answers.Message{ID: m.ID, StoredAt: m.StoredAt}})
	}
}

// endDrawing tells the cache which messages of an open context the assembly is made from.
func (b *builder) endDrawing(c *ctxdir.Context) {
	all := b.drawn[c.ID()]
	if len(all) == 0 {
		return
	}
	delete(b.drawn, c.ID())
	var is struct { // of metadata.json: see docs/FORMAT.md
		Lines []struct {
			ID     uuid.UUID `json:"id"`
			Folder string    `json:"folder"`
		} `json:"lines"`
	}
	err := json.Unmarshal(c.Metadata().Raw, &is)
	folders := map[uuid.UUID]string{}
	for _, l := range is.Lines {
		folders[l.ID] = l.Folder
	}
	messages := make([]answers.Message, len(all))
	for i := range all {
		messages[i] = all[i].Message
		messages[i].Folder = folders[all[i].line]
		b.keeps = b.keeps && err == nil && messages[i].Folder != ""
	}
	b.cache.Draw(c.ID(), messages)
}

// keep keeps an assembly for the next call with the same request.
func (b *builder) keep(a *Assembly) {
	if b.cache == nil || !b.keeps || b.unread.Load() || a.RemoteErr != nil {
		return
	}
	if text, err := json.Marshal(a); err == nil {
		b.cache.Put(b.asked, b.commits, text)
	}
}
