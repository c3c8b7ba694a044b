package exchange

import (
	"context"
	"fmt"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/privacy"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// Source has the conversations of an agent in local mode, and decides what leaves of them.
type Source interface {
	// Context returns the context for a request. Nothing may be in it that must not leave the machine.
	Context(ctx context.Context, q Query) (ConversationContext, error)
}

// Query is a request for which a context is needed.
type Query struct {
	SessionID string
	Message   string // the question
	Have      Have   // of the server
	MaxTokens int
}

// Parts of the budget, and bounds.
const (
	windowShare  = 0.75 // of the budget, for the newest messages
	summaryShare = 0.1  // for the summary of older ones
	perMessage   = 160  // tokens of one message
	firstShare   = 0.5  // of the window, when it begins anew: so there is room for it to grow
	maxSessions  = 100  // whose windows are remembered
)

// Local is the [Source] over a store. What leaves has passed the filter of package privacy, which knows the names of the store:
// what people and models said, shortened, without code, paths, names and numbers. Calls of tools and their results do not leave.
//
// The context is a window of the newest messages, and a summary of those passages before it that answer the question. The
// window grows with the conversation, so that only what is new travels, and begins anew when it exceeds the budget.
type Local struct {
	store *ctxdir.Store

	mu      sync.Mutex
	index   *search.Index
	windows map[uuid.UUID]*window
}

// window is what was sent of a conversation.
type window struct {
	branch   string
	start    int64     // the position of the first message
	covered  int64     // the position after the last one
	anchor   uuid.UUID // the id of the message before covered
	messages []ContextMessage
}

// NewLocal returns a source over a store. The caller closes it, before the store.
func NewLocal(s *ctxdir.Store) *Local { return &Local{store: s, windows: map[uuid.UUID]*window{}} }

// Close releases the search index.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index == nil {
		return nil
	}
	x := l.index
	l.index = nil
	return x.Close()
}

// Context implements [Source]. It fails with [ctxdir.ErrNotExist] without such a context.
func (l *Local) Context(ctx context.Context, q Query) (answer ConversationContext, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, err := SessionContext(q.SessionID)
	if err != nil {
		return answer, err
	}
	names, err := moment.KnownNames(ctx, l.store)
	if err != nil {
		return answer, err
	}
	filter := privacy.NewFilter(names...)
	var w *window
	err = l.store.Use(ctx, id, func(c *ctxdir.Context) (err error) {
		w, err = l.window(ctx, c, q, filter)
		return err
	})
	if err != nil {
		return answer, err
	}
	if answer.Messages = w.messages; q.Have.Len > 0 && q.Have.Len <= len(w.messages) && Chain(w.messages[:q.Have.Len]) == q.Have.Last {
		answer.From, answer.Messages = q.Have.Len, w.messages[q.Have.Len:]
	}
	if w.start > 0 {
		answer.Summary, err = l.summary(ctx, id, w, q, filter)
	}
	return answer, err
}

// SessionContext returns the id of the context of a session: a session id is that of a context, or its external id.
func SessionContext(session string) (uuid.UUID, error) {
	if err := checkSession(session); err != nil {
		return uuid.Nil, err
	}
	if id, err := uuid.Parse(session); err == nil && len(session) == 36 {
		return id, nil
	}
	return ctxdir.ContextID("", session), nil
}

// window returns the window of a conversation up to the question.
func (l *Local) window(ctx context.Context, c *ctxdir.Context, q Query, f *privacy.Filter) (*window, error) {
	b := c.Active()
	end, err := b.Len(ctx)
	if err != nil {
		return nil, err
	}
	if end > 0 { // the agent may have stored the question already
		last, err := b.Range(ctx, end-1, end)
		if err != nil {
			return nil, err
		}
		if len(last) == 1 && said(ctx, last[0]) == (ContextMessage{transcript.User, q.Message}) {
			end--
		}
	}
	budget := int(windowShare * float64(q.MaxTokens))
	w := l.windows[c.ID()]
	if w != nil && w.branch == b.Name() && w.isBefore(ctx, b, end) && w.passes(f) {
		grown, err := w.grow(ctx, b, end, f)
		if err != nil {
			return nil, err
		}
		if tokens(grown.messages) <= budget && len(grown.messages) <= MaxMessages {
			l.keep(c.ID(), grown)
			return grown, nil
		}
	}
	if w, err = newWindow(ctx, b, end, int(firstShare*float64(budget)), f); err == nil {
		l.keep(c.ID(), w)
	}
	return w, err
}

func (l *Local) keep(id uuid.UUID, w *window) {
	if l.windows[id] == nil && len(l.windows) >= maxSessions {
		for other := range l.windows { // any: it costs that session a longer answer
			delete(l.windows, other)
			break
		}
	}
	l.windows[id] = w
}

// isBefore reports whether the window is a part of the branch.
func (w *window) isBefore(ctx context.Context, b *ctxdir.Branch, end int64) bool {
	if w.covered > end || w.covered == 0 {
		return false
	}
	m, err := b.Range(ctx, w.covered-1, w.covered)
	return err == nil && len(m) == 1 && m[0].ID == w.anchor
}

// passes reports whether the filter, which may know more names now, would let the window pass.
func (w *window) passes(f *privacy.Filter) bool {
	for _, m := range w.messages {
		if f.Check(m.Content) != nil {
			return false
		}
	}
	return true
}

func (w *window) grow(ctx context.Context, b *ctxdir.Branch, end int64, f *privacy.Filter) (*window, error) {
	grown := *w
	grown.messages = w.messages[:len(w.messages):len(w.messages)]
	for m, err := range b.Messages(ctx, w.covered, end) {
		if err != nil {
			return nil, err
		}
		grown.covered, grown.anchor = m.Position+1, m.ID
		if s, ok := shortened(ctx, m, f); ok {
			grown.messages = append(grown.messages, s)
		}
	}
	return &grown, nil
}

// newWindow returns a window of the newest messages before end, as far as they have so many tokens.
func newWindow(ctx context.Context, b *ctxdir.Branch, end int64, most int, f *privacy.Filter) (*window, error) {
	w := &window{branch: b.Name(), start: end, covered: end}
	const page = 64
	for size, full := 0, false; w.start > 0 && !full; {
		all, err := b.Range(ctx, max(0, w.start-page), w.start)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%w: the branch lost messages meanwhile", ctxdir.ErrNotExist)
		}
		for i := len(all) - 1; i >= 0 && !full; i-- {
			if all[i].Position+1 == end {
				w.anchor = all[i].ID
			}
			s, ok := shortened(ctx, all[i], f)
			if ok {
				size += tokens([]ContextMessage{s})
			}
			if full = size > most || len(w.messages) == MaxMessages/2; full {
				break
			}
			if w.start = all[i].Position; ok {
				w.messages = append([]ContextMessage{s}, w.messages...)
			}
		}
	}
	return w, nil
}

// said returns what a person or a model says in a message; nothing of tools.
func said(ctx context.Context, m *ctxdir.Message) ContextMessage {
	body, err := m.Texts(ctx)
	if m.Unavailable != nil || err != nil || transcript.Bookkeeping(body) {
		return ContextMessage{}
	}
	parts := transcript.Parts(body)
	s := ContextMessage{Role: transcript.VoiceOf(m.Role, parts)}
	if s.Role != transcript.User && s.Role != transcript.Assistant {
		return ContextMessage{}
	}
	for i := range parts {
		if parts[i].Kind == transcript.Text {
			if s.Content != "" {
				s.Content += "\n"
			}
			s.Content += parts[i].Text
		}
	}
	return s
}

// shortened returns what may leave of a message.
func shortened(ctx context.Context, m *ctxdir.Message, f *privacy.Filter) (s ContextMessage, ok bool) {
	if s = said(ctx, m); s.Content == "" {
		return s, false
	}
	clean, err := f.Clean(s.Content)
	if err == nil && count(clean) > perMessage {
		if clean, err = (compress.Local{Tokens: count}).Summary(ctx, []string{clean}, perMessage); err == nil {
			err = f.Check(clean)
		}
	}
	s.Content = clean
	return s, err == nil && clean != ""
}

func count(text string) int { return assemble.Estimate().Count(text) }

// tokens counts the tokens of messages, with some for the frame of each.
func tokens(all []ContextMessage) (n int) {
	for _, m := range all {
		n += count(m.Content) + 4
	}
	return n
}

// summary returns a summary of the passages before the window that answer the question.
func (l *Local) summary(ctx context.Context, id uuid.UUID, w *window, q Query, f *privacy.Filter) (string, error) {
	if l.index == nil {
		x, err := search.Open(context.WithoutCancel(ctx), l.store)
		if err != nil {
			return "", err
		}
		l.index = x
	}
	a, err := assemble.Build(ctx, l.store, assemble.Request{
		Context: id, Branch: w.branch, Query: q.Message, MaxTokens: q.MaxTokens, Format: assemble.Text, Tokens: assemble.Estimate(),
		Index: l.index, Compression: compress.ModeLocal,
	})
	if err != nil {
		return "", err
	}
	var texts []string
	for i := range a.Items {
		it := &a.Items[i]
		isProse := it.Role == transcript.User || it.Role == transcript.Assistant
		switch {
		case it.Kind == assemble.Moment, it.Kind == assemble.Summary:
		case it.Kind == assemble.Passage && it.Position < w.start && isProse:
		default:
			continue // files and code are structure, and the rest is in the window
		}
		if clean, err := f.Clean(it.Text); err == nil && clean != "" {
			texts = append(texts, clean)
		}
	}
	text, err := (compress.Local{Tokens: count}).Summary(ctx, texts, int(summaryShare*float64(q.MaxTokens)))
	if err == nil {
		err = f.Check(text)
	}
	if err != nil {
		return "", fmt.Errorf("summarise older messages: %w", err)
	}
	return text, nil
}
