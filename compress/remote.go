package compress

import (
	"context"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
)

// Compressor makes a summary of texts.
type Compressor interface {
	// Summary returns a summary of texts, in order, of at most maxTokens tokens; it is empty if nothing fits.
	Summary(ctx context.Context, texts []string, maxTokens int) (string, error)
}

// Remote lets a model write the summary. Only what the filter of the endpoint lets pass leaves the machine.
type Remote struct {
	Endpoint *Endpoint
	Tokens   func(text string) int // as in [Local]
}

const instruction = "Summarise the conversation below in at most %d tokens, in plain sentences, one a line. " +
	"Keep decisions, causes and open questions. Keep placeholders such as [name] and [code] as they are. Reply with the summary only."

// sentTokens bounds what is sent, in tokens; a longer conversation is shortened with [Local] first.
const sentTokens = 32_000

// bytesPerToken bounds an answer: a longer one is not the summary that was asked for.
const bytesPerToken = 32

// Summary returns the summary of the endpoint, without the lines that are too much. It fails with [ErrRemote] if no line
// fits, or if the answer is much longer than what was asked for.
func (r Remote) Summary(ctx context.Context, texts []string, maxTokens int) (string, error) {
	sent := strings.Join(texts, "\n\n")
	if Estimate(sent) > sentTokens {
		var err error
		if sent, err = (Local{}).Summary(ctx, texts, sentTokens); err != nil {
			return "", err
		}
	}
	answer, err := r.Endpoint.Ask(ctx, fmt.Sprintf(instruction, maxTokens), sent, maxTokens)
	if err != nil {
		return "", err
	}
	if most := bytesPerToken * maxTokens; len(answer) > most {
		return "", fmt.Errorf("%w: a response of %d bytes exceeds the limit of %d", ErrRemote, len(answer), most)
	}
	summary := cut(answer, maxTokens, r.Tokens)
	if summary == "" {
		return "", fmt.Errorf("%w: no sentence of the response fits into %d tokens", ErrRemote, maxTokens)
	}
	return summary, nil
}

// cut returns the first sentences of a text that fit, one a line.
func cut(text string, maxTokens int, count func(text string) int) string {
	if count == nil {
		count = Estimate
	}
	var kept string
	for _, s := range sentence.Split(text) {
		next := strings.TrimPrefix(kept+"\n"+s, "\n")
		if count(next) > maxTokens {
			break
		}
		kept = next
	}
	return kept
}

// Hybrid summarises locally, and lets a model rewrite the summary. If that fails, the local summary counts.
type Hybrid struct {
	Local  Local
	Remote Compressor
	Failed func(err error) // receives the errors of Remote; may be nil
}

// draftFactor is how much longer the draft for the model may be.
const draftFactor = 4

// Summary returns the summary of the remote endpoint, else the local one.
func (h Hybrid) Summary(ctx context.Context, texts []string, maxTokens int) (string, error) {
	local, err := h.Local.Summary(ctx, texts, maxTokens)
	if err != nil {
		return "", err
	}
	draft, err := h.Local.Summary(ctx, texts, draftFactor*maxTokens)
	if err != nil {
		return "", err
	}
	better, err := h.Remote.Summary(ctx, []string{draft}, maxTokens)
	switch {
	case err != nil && h.Failed != nil:
		h.Failed(err)
	case err == nil && better != "":
		return better, nil
	}
	return local, ctx.Err()
}
