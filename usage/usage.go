// Package usage counts the tokens and the cost of model calls, as agent tools and frameworks record them in messages. A
// call is a [Step]. Tools repeat their records: on several lines of one reply, in forks, in sessions that continue
// another one. Each call counts once.
//
// Where a conversation records nothing, its steps are estimates, and say so.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package usage

import (
	"math"
	"time"

	"github.com/google/uuid"
)

// Tokens are counts as the tool records them. Tools differ: the input of Codex and Gemini CLI includes what the model
// read from the cache, that of Claude Code and opencode does not. Total counts every token once.
type Tokens struct {
	Input      int64
	CacheRead  int64 // read from the provider's cache
	CacheWrite int64 // written to it
	Output     int64
	Reasoning  int64 // of Gemini CLI beside Output, otherwise a part of it
	Total      int64

	fresh int64 // input that was neither read from the cache nor written to it
	said  int64 // all output
	hour  int64 // of CacheWrite, what stays in the cache for an hour
}

// Step is one call of a model, or several that the tool records only together.
type Step struct {
	Context  uuid.UUID
	Branch   string // the first branch that shows the record
	Position int64
	Message  uuid.UUID // the message with the record, uuid.Nil if it is in the metadata
	Prompt   uuid.UUID // the person's last message before it, uuid.Nil if there is none; see [PromptText]
	At       time.Time
	Model    string // "" if unknown
	Calls    int64  // 1, or the number of calls that the tool records together
	Tokens
	Cost      float64 // in US dollars
	Priced    bool    // Cost is known
	Computed  bool    // Cost is not recorded but computed, see [Step.Charge]
	Estimated bool    // the tool recorded no tokens: they are estimates, see [Estimate]
}

// Sum adds up steps.
type Sum struct {
	Steps     int64 // records of calls
	Calls     int64
	Estimated int64 // of Steps
	Unpriced  int64 // of Steps
	Computed  int64 // of Steps: their cost is not recorded but computed, see [Step.Charge]
	Tokens
	UnpricedTokens int64   // of Total, those of unpriced steps
	Cost           float64 // of the others
	Rough          bool    // Cost has that of estimated tokens
}

// Add adds a step.
func (s *Sum) Add(step *Step) {
	s.Steps++
	s.Calls = plus(s.Calls, step.Calls)
	s.add(step.Tokens)
	if step.Estimated {
		s.Estimated++
	}
	if step.Computed {
		s.Computed++
	}
	if step.Priced {
		s.Cost += step.Cost
		s.Rough = s.Rough || step.Estimated
	} else {
		s.Unpriced++
		s.UnpricedTokens = plus(s.UnpricedTokens, step.Total)
	}
}

func (t *Tokens) add(o Tokens) {
	by := o.fields()
	for i, to := range t.fields() {
		*to = plus(*to, *by[i])
	}
}

// fields are the counts.
func (t *Tokens) fields() [9]*int64 {
	return [...]*int64{&t.Input, &t.CacheRead, &t.CacheWrite, &t.Output, &t.Reasoning, &t.Total, &t.fresh, &t.said, &t.hour}
}

// minus subtracts earlier sums.
func (t Tokens) minus(o Tokens) Tokens {
	return Tokens{
		Input: max(t.Input-o.Input, 0), CacheRead: max(t.CacheRead-o.CacheRead, 0), CacheWrite: max(t.CacheWrite-o.CacheWrite, 0),
		Output: max(t.Output-o.Output, 0), Reasoning: max(t.Reasoning-o.Reasoning, 0), Total: max(t.Total-o.Total, 0),
		fresh: max(t.fresh-o.fresh, 0), said: max(t.said-o.said, 0), hour: max(t.hour-o.hour, 0),
	}
}

// plus adds counts that are not negative. It stops at the largest one.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
