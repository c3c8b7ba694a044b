package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

const (
	// maxBudget bounds the tokens of an assembled context.
	maxBudget = 2_000_000
	// maxPinned bounds the messages with which it begins.
	maxPinned = 100
)

// assembleRequest says what to assemble. A workspace, whose files would be read, cannot be named.
type assembleRequest struct {
	Context   string            `json:"context"` // a full id, a unique part of one, or an external id
	Branch    string            `json:"branch"`
	Labels    map[string]string `json:"labels"`
	Query     string            `json:"query"`
	MaxTokens int               `json:"max_tokens"`
	All       bool              `json:"all"` // passages of every context
	Pinned    []uuid.UUID       `json:"pinned"`
	Format    string            `json:"format"`    // text, openai or anthropic
	Tokenizer string            `json:"tokenizer"` // o200k_base or estimate
	Explain   bool              `json:"explain"`
}

type assembly struct {
	Text       string           `json:"text"`
	Items      []record.Item    `json:"items"`
	LeftOut    []record.LeftOut `json:"left_out,omitempty"`
	Tokens     int              `json:"tokens"`
	MaxTokens  int              `json:"max_tokens"`
	Tokenizer  string           `json:"tokenizer"`
	Strategies []string         `json:"strategies"`
	Behind     int64            `json:"behind"`
}

func (a *assembleRequest) request() (r assemble.Request, err error) {
	r = assemble.Request{
		Branch: a.Branch, Labels: a.Labels, Query: a.Query, MaxTokens: a.MaxTokens, All: a.All, Pinned: a.Pinned,
		Format: assemble.Format(a.Format), Explain: a.Explain,
	}
	if a.Format == "" {
		r.Format = assemble.Text
	}
	formats := []assemble.Format{assemble.Text, assemble.OpenAI, assemble.Anthropic}
	switch {
	case a.MaxTokens < 0 || a.MaxTokens > maxBudget:
		return r, invalid("max_tokens: expected a number from 1 to %d", maxBudget)
	case len(a.Pinned) > maxPinned:
		return r, invalid("pinned: the list exceeds the limit of %d messages", maxPinned)
	case !slices.Contains(formats, r.Format):
		return r, invalid("format: unknown value %q; use one of: text, openai, anthropic", short(a.Format))
	case a.Context == "" && strings.TrimSpace(a.Query) == "":
		return r, invalid("context or query is required")
	}
	switch a.Tokenizer {
	case "", "o200k_base":
	case "estimate":
		r.Tokens = assemble.Estimate()
	default:
		return r, invalid("tokenizer: unknown value %q; use one of: o200k_base, estimate", short(a.Tokenizer))
	}
	return r, nil
}

// assemble assembles what a model should see. It reads nothing but the store, and sends nothing elsewhere.
func (x *Server) assemble(w http.ResponseWriter, r *http.Request) error {
	var a assembleRequest
	if err := readDocument(r, &a); err != nil {
		return err
	}
	request, err := a.request()
	if err != nil {
		return err
	}
	v := x.store.of(r)
	if a.Context != "" {
		if request.Context, err = v.resolve(r.Context(), short(a.Context)); err != nil {
			return err
		}
	}
	if v.limited {
		var nothing bool
		if request.Contexts, nothing, err = v.among(r.Context(), nil, ""); err != nil {
			return err
		}
		if nothing {
			request.Contexts = []uuid.UUID{uuid.Nil} // no context has it
		}
	}
	if request.Index, err = x.index.open(r.Context()); err != nil {
		return err
	}
	done, err := assemble.Build(r.Context(), v.s, request)
	if err != nil {
		return err
	}
	answer := assembly{
		Text: done.Text, Items: []record.Item{}, Tokens: done.Tokens, MaxTokens: done.MaxTokens, Tokenizer: done.Tokenizer,
		Strategies: append([]string{}, done.Strategies...), Behind: done.Behind,
	}
	for i := range done.Items {
		answer.Items = append(answer.Items, record.OfItem(&done.Items[i]))
	}
	for i := range done.LeftOut {
		answer.LeftOut = append(answer.LeftOut, record.OfLeftOut(&done.LeftOut[i]))
	}
	return sendDocument(w, http.StatusOK, answer)
}
