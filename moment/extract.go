package moment

import (
	"context"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/transcript"
)

// Options says what to extract.
type Options struct {
	Branch    string    // only messages that this branch shows; empty for all branches of the conversation
	Types     []Type    // only moments of these types; empty for all
	Relevance float64   // only moments of at least this relevance
	Limit     int       // at most so many, the most relevant ones; 0 for all
	DryRun    bool      // return what would be stored, and store nothing
	Extractor Extractor // nil for [Local]
}

// Extractor makes moments from the texts of a conversation, in order. Each moment has the ids of messages in From.
type Extractor interface {
	Moments(ctx context.Context, texts []Text) ([]Moment, error)
}

// Extract makes moments from the messages of a context, stores those that are new, and returns them. So extracting
// twice adds nothing.
func Extract(ctx context.Context, c *ctxdir.Context, o Options) ([]Moment, error) {
	texts, err := Texts(ctx, c, o.Branch)
	if err != nil {
		return nil, err
	}
	by := o.Extractor
	if by == nil {
		by = Local{}
	}
	found, err := by.Moments(ctx, texts)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(m Moment) bool {
		return m.Relevance < o.Relevance || len(o.Types) > 0 && !slices.Contains(o.Types, m.Type)
	})
	if o.Limit > 0 && len(found) > o.Limit {
		best := Rank(slices.Clone(found))[:o.Limit]
		found = slices.DeleteFunc(found, func(m Moment) bool { return !slices.ContainsFunc(best, m.same) })
	}
	if !o.DryRun {
		return addAll(ctx, c, found)
	}
	known, err := knownIn(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Context, found[i].ID = c.ID(), found[i].identify(c.ID())
	}
	return slices.DeleteFunc(found, func(m Moment) bool { return known[m.ID] }), nil
}

func (m *Moment) same(other Moment) bool {
	return m.Content == other.Content && slices.Equal(m.From, other.From)
}

// Texts returns what people and models say in a context: without thoughts, tool calls and their results, and the
// bookkeeping of agent tools. Each message counts once, whatever branches show it.
func Texts(ctx context.Context, c *ctxdir.Context, branch string) (all []Text, err error) {
	branches, err := c.Branches(ctx)
	if err != nil {
		return nil, err
	}
	if branch != "" {
		if _, err := c.Branch(branch); err != nil {
			return nil, err
		}
	}
	for _, info := range branches {
		if branch != "" && info.Name != branch || branch == "" && BranchKind(info.Extra) != "" {
			continue
		}
		from := info.Shared // an earlier branch shows these
		if branch != "" {
			from = 0
		}
		b, err := c.Branch(info.Name)
		if err != nil {
			return nil, err
		}
		for m, err := range b.Messages(ctx, from, ctxdir.End) {
			if err != nil {
				return nil, err
			}
			t, commits, ok := textOf(ctx, m)
			switch {
			case ok:
				all = append(all, t)
			case t.Acts && len(all) > 0:
				last := &all[len(all)-1]
				last.Acts, last.Edits = true, last.Edits || t.Edits
			}
			for _, text := range commits {
				all = append(all, Text{ID: t.ID, Voice: Commit, At: t.At, Text: text})
			}
		}
	}
	return all, nil
}

// textOf returns what a message says, and the messages of the commits that it makes; ok is false if it says nothing.
func textOf(ctx context.Context, m *ctxdir.Message) (t Text, commits []string, ok bool) {
	if m.Unavailable != nil || message.IsBookkeeping(m.Role) {
		return t, nil, false
	}
	raw, err := m.Texts(ctx)
	if err != nil || transcript.Bookkeeping(raw) || string(transcript.ObjectOf(raw)["isCompactSummary"]) == "true" {
		return t, nil, false
	}
	parts := transcript.Parts(raw)
	t = Text{ID: m.ID, Voice: transcript.VoiceOf(m.Role, parts), At: m.CreatedAt}
	if t.At.IsZero() {
		t.At = m.StoredAt
	}
	var texts []string
	for _, p := range parts {
		if p.Kind == transcript.Call {
			text := commitOf(&p)
			if text != "" {
				commits = append(commits, text)
			}
			t.Acts, t.Edits = true, t.Edits || text != "" || p.Edits()
		}
		switch {
		case p.Kind == transcript.Result && strings.HasPrefix(p.Text, answered):
			t.Voice = transcript.User
			texts = append(texts, p.Text)
		case p.Kind == transcript.Text && (t.Voice == transcript.User || t.Voice == transcript.Assistant):
			texts = append(texts, p.Text)
		}
	}
	t.Text = strings.Join(texts, "\n\n")
	return t, commits, strings.TrimSpace(t.Text) != ""
}
