package moment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/compress"
)

// Remote lets a model judge the sentences that may be moments. They leave the machine as the filter of the endpoint
// leaves them; the moments have the sentences as they were said.
type Remote struct {
	Endpoint *compress.Endpoint
}

const judgement = "Below are numbered sentences from a conversation about work. Where a person answered a question or " +
	"chose an option, " +
	"it comes first. Say which of them are worth finding again months later, " +
	"and as what: decision (what was chosen), pattern (how things are done), solution (what caused a fault or mends it), " +
	"context (facts about the work). Placeholders such as [name] stand for words you cannot see. " +
	`Reply with a JSON array only, with one object for each sentence worth keeping: {"n": number, "type": type, "relevance": 0 to 1}.`

// Bounds of what the endpoint judges.
const (
	atOnce        = 40  // sentences in one request
	maxCandidates = 400 // sentences of one conversation: the strongest ones
	replyTokens   = 2000
)

// Moments returns the sentences that the endpoint wants to keep.
func (r Remote) Moments(ctx context.Context, texts []Text) ([]Moment, error) {
	var kept []Moment
	for block := range slices.Chunk(strongest(candidates(texts, weak)), atOnce) {
		var b strings.Builder
		for i, m := range block {
			fmt.Fprintf(&b, "Sentence %d. %s\n", i+1, strings.Join(strings.Fields(m.Content), " "))
		}
		answer, err := r.Endpoint.Ask(ctx, judgement, b.String(), replyTokens)
		if err != nil {
			return nil, err
		}
		judged, err := judge(block, answer)
		if err != nil {
			return nil, err
		}
		kept = append(kept, judged...)
	}
	return kept, nil
}

// strongest returns the strongest candidates in their order.
func strongest(all []Moment) []Moment {
	if len(all) <= maxCandidates {
		return all
	}
	least := Rank(slices.Clone(all))[maxCandidates-1].Relevance
	all = slices.DeleteFunc(all, func(m Moment) bool { return m.Relevance < least })
	return all[:maxCandidates]
}

// judge applies the answer of a model, of which it believes nothing but numbers and types.
func judge(block []Moment, answer string) (kept []Moment, err error) {
	from, to := strings.IndexByte(answer, '['), strings.LastIndexByte(answer, ']')
	var all []struct {
		N         int     `json:"n"`
		Type      Type    `json:"type"`
		Relevance float64 `json:"relevance"`
	}
	if from < 0 || to < from || json.Unmarshal([]byte(answer[from:to+1]), &all) != nil {
		return nil, fmt.Errorf("%w: the response is not the requested JSON", compress.ErrRemote)
	}
	seen := map[int]bool{}
	for _, x := range all {
		if x.N < 1 || x.N > len(block) || seen[x.N] || !slices.Contains(Types, x.Type) || !(x.Relevance >= 0 && x.Relevance <= 1) {
			continue
		}
		seen[x.N] = true
		m := block[x.N-1]
		m.Type, m.Relevance = x.Type, x.Relevance
		kept = append(kept, m)
	}
	return kept, nil
}

// Hybrid is [Remote], and [Local] if that fails.
type Hybrid struct {
	Remote Extractor
	Failed func(err error) // receives the errors of Remote; may be nil
}

// Moments returns the moments of the remote extractor, else the local ones.
func (h Hybrid) Moments(ctx context.Context, texts []Text) ([]Moment, error) {
	found, err := h.Remote.Moments(ctx, texts)
	if err == nil || ctx.Err() != nil {
		return found, err
	}
	if h.Failed != nil {
		h.Failed(err)
	}
	return Local{}.Moments(ctx, texts)
}
