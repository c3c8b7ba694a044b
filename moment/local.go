package moment

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/google/uuid"
)

// Local extracts moments without a model. It takes sentences word by word, and so adds nothing to what was said.
type Local struct{}

// Moments returns the sentences that have the cues of a type. Their relevance is the strength of the cue times the
// rarity of their words in the conversation.
func (Local) Moments(ctx context.Context, texts []Text) ([]Moment, error) {
	var found []Moment
	for _, t := range texts {
		for _, s := range sentence.Split(t.Text) {
			if kind, score := classify(s); kind != "" {
				found = append(found, Moment{Type: kind, Content: s, Relevance: score, From: []uuid.UUID{t.ID}, At: t.At})
			}
		}
	}
	return found, ctx.Err()
}
