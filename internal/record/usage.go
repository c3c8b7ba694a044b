package record

import (
	"time"

	"github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

// Usage is a row of a report of tokens and cost.
type Usage struct {
	Record   string     `json:"record,omitempty"`
	By       string     `json:"by"`
	Key      string     `json:"key"`               // "" for steps that have none
	Context  string     `json:"context,omitempty"` // of a step, a prompt, a message
	Branch   string     `json:"branch,omitempty"`
	Position *int64     `json:"position,omitempty"`
	ID       string     `json:"id,omitempty"` // of the message
	Prompt   string     `json:"prompt,omitempty"`
	Text     string     `json:"text,omitempty"` // the beginning of the prompt, or the title of the context
	Model    string     `json:"model,omitempty"`
	At       *time.Time `json:"at,omitempty"`
	UsageCounts
}

// UsageSummary is the usage of all steps.
type UsageSummary struct {
	Record   string `json:"record,omitempty"`
	Contexts int    `json:"contexts"`
	UsageCounts
	Prices         string   `json:"prices"`          // the month of the published prices
	UnpricedModels []string `json:"unpriced_models"` // "" for unknown ones
}

// UsageCounts are the sums of steps.
type UsageCounts struct {
	Steps          int64    `json:"steps"`
	Calls          int64    `json:"calls"` // a step may be the record of several
	Input          int64    `json:"input"`
	CacheRead      int64    `json:"cache_read"`
	CacheWrite     int64    `json:"cache_write"`
	Output         int64    `json:"output"`
	Reasoning      int64    `json:"reasoning"`
	Total          int64    `json:"total"`
	Cost           *float64 `json:"cost,omitempty"`  // in US dollars
	Unpriced       int64    `json:"unpriced"`        // steps without a cost
	Estimated      int64    `json:"estimated"`       // steps whose tokens are estimates
	Computed       int64    `json:"computed"`        // steps whose cost is computed from prices, not recorded
	UnpricedTokens int64    `json:"unpriced_tokens"` // of the steps without a cost
}

// OfUsage describes a row of a report by a key.
func OfUsage(by usage.Key, row *usage.Row) Usage {
	u := Usage{
		By: string(by), Key: row.Key, Context: ID(row.Context), Branch: row.Branch, ID: ID(row.Message), Prompt: ID(row.Prompt),
		Text: row.Text, Model: row.Model, UsageCounts: OfSum(&row.Sum),
	}
	if row.Context != uuid.Nil {
		at := row.At.UTC()
		u.At = &at
	}
	if by == usage.ByMessage || by == usage.ByStep {
		u.Position = &row.Position
	}
	return u
}

// OfReport returns the summary of a report on this many contexts. month is the month of the published prices.
func OfReport(r *usage.Report, contexts int, month string) UsageSummary {
	return UsageSummary{"", contexts, OfSum(&r.Sum), month, r.Charges.Unpriced()}
}

// OfSum describes sums of steps.
func OfSum(s *usage.Sum) UsageCounts {
	u := UsageCounts{
		s.Steps, s.Calls, s.Input, s.CacheRead, s.CacheWrite, s.Output, s.Reasoning, s.Total, &s.Cost, s.Unpriced, s.Estimated,
		s.Computed, s.UnpricedTokens,
	}
	if s.Unpriced == s.Steps {
		u.Cost = nil
	}
	return u
}
