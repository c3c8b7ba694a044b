package usage_test

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/usage"
)

// TestPublishedPrices: the table has a price for each of its models, and none that is absurd.
func TestPublishedPrices(t *testing.T) {
	raw, err := os.ReadFile("prices.json")
	if err != nil {
		t.Fatal(err)
	}
	var models map[string]map[string]any
	if err := json.Unmarshal(raw, &models); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"date", "source", "licence"} {
		if models["about"][member] == nil {
			t.Errorf("the head has no %s", member)
		}
	}
	delete(models, "about")
	prices, month := usage.PublishedPrices()
	if _, err := time.Parse("2006-01", month); err != nil {
		t.Error(err)
	}
	if lines := len(regexp.MustCompile(`(?m)^  "[^"]+": \{`).FindAll(raw, -1)) - 1; len(prices) != len(models) || lines != len(models) {
		t.Errorf("%d prices of %d models in %d lines", len(prices), len(models), lines)
	}
	known := regexp.MustCompile(`^((in|out)put_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost(_above_1hr)?)` +
		`(_above_\d+k_tokens)?$|^tiered_pricing$`)
	for name, members := range models {
		for member := range members {
			if !known.MatchString(member) {
				t.Errorf("%s: unknown member %s", name, member)
			}
		}
		if name != strings.ToLower(name) || strings.ContainsAny(name, "*/ ") {
			t.Errorf("%s is no name in lower case", name)
		}
	}
	sane := func(name string, r usage.Rates) {
		const most = 200e-6 // dollars for a token
		slack := r.Input * 1e-9
		switch {
		case r.Input < 0 || r.CacheRead < 0 || r.CacheWrite < 0 || r.Output < 0, r.Input > most || r.Output > 5*most,
			r.Output > 0 && r.Output < r.Input, r.Output > 12*r.Input+slack, r.CacheRead > r.Input,
			r.CacheWrite > 1.25*r.Input+slack, r.CacheWriteHour > 2*r.Input+slack, r.CacheWriteHour < r.CacheWrite:
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, p := range prices {
		sane(name, p.Rates)
		for i, tier := range p.Tiers {
			sane(name, tier.Rates)
			if tier.Input < p.Input || tier.Output < p.Output || i > 0 && tier.Above <= p.Tiers[i-1].Above {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	prices["gpt-5"] = usage.Price{}
	if again, _ := usage.PublishedPrices(); again["gpt-5"].Input == 0 {
		t.Error("a change of the table changed that of others")
	}
}

// TestModels: names as records have them find the price of their model, and never that of another one.
func TestModels(t *testing.T) {
	prices, _ := usage.PublishedPrices()
	tests := []struct {
		model  string
		priced string // the name in the table, "" for none
	}{
		{"claude-opus-4-5", "claude-opus-4-5"},
		{"claude-opus-4-5-20251101", "claude-opus-4-5"},
		{"claude-opus-4.5", "claude-opus-4-5"},
		{"Claude-Opus-4.5", "claude-opus-4-5"},
		{"anthropic/claude-opus-4.5", "claude-opus-4-5"},
		{"openrouter/anthropic/claude-opus-4.5", "claude-opus-4-5"},
		{"anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"},
		{"bedrock/global.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"},
		{"us.anthropic.claude-opus-4-5-20251101-v1:0", "us.anthropic.claude-opus-4-5"},
		{"bedrock/us.anthropic.claude-opus-4-6-v1", "us.anthropic.claude-opus-4-6"},
		{"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0", "us.anthropic.claude-haiku-4-5"},
		{"claude-opus-4-5@20251101", "claude-opus-4-5"},
		{"vertex_ai/claude-sonnet-5@default", "claude-sonnet-5"},
		{"projects/p/locations/l/publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"},
		{"claude-sonnet-4-20250514", "claude-sonnet-4"},
		{"claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"},
		{"claude-opus-4-1-20250805", "claude-opus-4-1"},
		{"gpt-5", "gpt-5"},
		{"gpt-5-2025-08-07", "gpt-5"},
		{"openai/gpt-5-mini-2025-08-07", "gpt-5-mini"},
		{"gpt-5.1-codex-mini", "gpt-5.1-codex-mini"},
		{"azure/gpt-5.5-2026-04-23", "gpt-5.5"},
		{"openai.gpt-5.5", "openai.gpt-5.5"},
		{"gpt-4o-2024-08-06", "gpt-4o"},
		{"gpt-4o-2024-05-13", "gpt-4o-2024-05-13"},
		{"models/gemini-2.5-flash", "gemini-2.5-flash"},
		{"gemini/gemini-3-pro-preview", "gemini-3-pro-preview"},
		{"x-ai/grok-4.5", "grok-4.5"},
		{"z-ai/glm-4.6", "glm-4.6"},
		{"moonshotai/kimi-k2.5", "kimi-k2.5"},
		{"MiniMax-M2.5", "minimax-m2.5"},
		{"dashscope/qwen3-coder-plus", "qwen3-coder-plus"},
		{"mistral/devstral-2512", "devstral-2512"},

		{"", ""},
		{"about", ""},
		{"gpt-5-turbo", ""},
		{"gpt-5.7", ""},
		{"gpt-5-mini-fast", ""},
		{"my-gpt-5", ""},
		{"gpt", ""},
		{"claude-opus-4-6-fast", ""},
		{"claude-opus", ""},
		{"glm-4.6:free", ""},
		{"ollama/deepseek-chat", ""},
		{"groq/moonshotai/kimi-k2.5", ""},
		{"ap-south-2.anthropic.claude-opus-4-5", ""},
		{"-20251101", ""},
		{"openai/", ""},
		{"anthropic/-v1:0", ""},
	}
	for _, test := range tests {
		got, ok := prices.Of(test.model)
		want, has := prices[test.priced]
		if ok != has || got.Rates != want.Rates {
			t.Errorf("%q: %+v, %v, want that of %q", test.model, got, ok, test.priced)
		}
	}
	// Names of the table that are longer go first, and patterns last.
	own := usage.Prices{
		"*": {Rates: usage.Rates{Input: 1}}, "gpt-*": {Rates: usage.Rates{Input: 2}}, "gpt-5*": {Rates: usage.Rates{Input: 3}},
		"gpt-5": {Rates: usage.Rates{Input: 4}}, "gpt-5-2025-08-07": {Rates: usage.Rates{Input: 5}},
		"openai/gpt-5": {Rates: usage.Rates{Input: 6}}, "*/gpt-5": {Rates: usage.Rates{Input: 7}},
	}
	for model, want := range map[string]float64{
		"other": 1, "gpt-4": 2, "gpt-5-mini": 3, "gpt-5": 4, "gpt-5-2025-08-07": 5, "gpt-5-2025-08-08": 4, "openai/gpt-5": 6, "groq/gpt-5": 7,
		"openai/gpt-5-2025-08-07": 6,
	} {
		if got, _ := own.Of(model); got.Input != want {
			t.Errorf("%s: %g, want %g", model, got.Input, want)
		}
	}
}

// TestRates: a call is charged by how long its input is, and how long its tokens stay in the cache.
func TestRates(t *testing.T) {
	prices, err := usage.ReadPrices(strings.NewReader(`{
		"a":{"input_cost_per_token":1,"output_cost_per_token":2,"cache_read_input_token_cost":0.5,
			"cache_creation_input_token_cost":3,"cache_creation_input_token_cost_above_1hr":4,
			"input_cost_per_token_above_1k_tokens":10,"output_cost_per_token_above_1k_tokens":20,
			"input_cost_per_token_above_1k_tokens_priority":1000,
			"cache_creation_input_token_cost_above_1hr_above_1k_tokens":40},
		"b":{"tiered_pricing":[{"range":[0,1000],"input_cost_per_token":1,"output_cost_per_token":2},
			{"range":[1000,2000],"input_cost_per_token":10,"output_cost_per_token":20},
			{"range":[2000,9000],"input_cost_per_token":100,"output_cost_per_token":200}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		model, counts string
		cost          float64
	}{
		{"a", `"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":100`, 10 + 2 + 50},
		{"a", `"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":100`, 300},
		{"a", `"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_1h_input_tokens":4}`, 15 + 16},
		{"a", `"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_1h_input_tokens":400}`, 400},
		{"a", `"input_tokens":900,"output_tokens":1,"cache_read_input_tokens":100`, 900 + 2 + 50},
		{"a", `"input_tokens":901,"output_tokens":1,"cache_read_input_tokens":100`, 9010 + 20 + 50},
		{
			"a", `"input_tokens":1,"output_tokens":0,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_1h_input_tokens":1000}`,
			10 + 40000,
		},
		{"b", `"prompt_tokens":1000,"completion_tokens":1`, 1002},
		{"b", `"prompt_tokens":1001,"completion_tokens":1`, 10030},
		{"b", `"prompt_tokens":2001,"completion_tokens":1`, 200300},
	}
	s := newStore(t)
	for _, test := range tests {
		c := newContext(t, s, ctxdir.Metadata{}, `{"role":"assistant","content":"x","model":"`+test.model+`","usage":{`+test.counts+`}}`)
		var sum usage.Sum
		for step := range steps(t, s, c.ID()) {
			step.Charge(prices)
			step.Charge(usage.Prices{test.model: {Rates: usage.Rates{Input: 1e6}}})
			sum.Add(&step)
		}
		if math.Abs(sum.Cost-test.cost) > 1e-9 || sum.Computed != 1 || sum.Unpriced != 0 || sum.UnpricedTokens != 0 {
			t.Errorf("%s: %s: %+v, want %g", test.model, test.counts, sum, test.cost)
		}
	}
}

// TestSumOfCosts: a sum says what has no cost, and what is computed or rough.
func TestSumOfCosts(t *testing.T) {
	s := newStore(t)
	recorded := newContext(t, s, ctxdir.Metadata{},
		`{"role":"assistant","content":"x","model":"m","usage":{"input_tokens":1,"output_tokens":2,"cost":5}}`,
		`{"role":"assistant","content":"x","model":"m","usage":{"input_tokens":10,"output_tokens":20}}`,
		`{"role":"assistant","content":"x","model":"other","usage":{"input_tokens":100,"output_tokens":200}}`)
	estimated := newContext(t, s, ctxdir.Metadata{Config: []byte(`{"model_id":"m"}`)}, `{"role":"assistant","content":"hello"}`)
	prices := usage.Prices{"m": {Rates: usage.Rates{Input: 1, Output: 1}}}
	var sum usage.Sum
	for step := range steps(t, s, recorded.ID()) {
		step.Charge(prices)
		sum.Add(&step)
	}
	if sum.Steps != 3 || sum.Computed != 1 || sum.Unpriced != 1 || sum.UnpricedTokens != 300 || sum.Cost != 35 || sum.Rough {
		t.Errorf("%+v", sum)
	}
	for step := range steps(t, s, estimated.ID()) {
		step.Charge(prices)
		sum.Add(&step)
	}
	if sum.Computed != 2 || !sum.Rough {
		t.Errorf("%+v", sum)
	}
}
