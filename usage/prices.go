package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/ctxdir/ctxdir/internal/chat"
)

// Price is what a model costs, in US dollars for a token.
type Price struct{ Input, CacheRead, CacheWrite, Output float64 }

// Prices are the prices of models by name. A name may be a pattern with *.
type Prices map[string]Price

// maxPrices bounds a file of prices, in bytes.
const maxPrices = 64 << 20

// ReadPrices reads the prices of models from JSON in the form of LiteLLM's file model_prices_and_context_window.json:
//
//	{"claude-opus-4-5*": {"input_cost_per_token": 5e-06, "cache_read_input_token_cost": 5e-07,
//	  "cache_creation_input_token_cost": 6.25e-06, "output_cost_per_token": 2.5e-05}}
//
// Tokens of a cache without a price cost as much as other input. Models without prices for input and output are left
// out.
func ReadPrices(r io.Reader) (Prices, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrices+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPrices {
		return nil, fmt.Errorf("prices: more than %d bytes", maxPrices)
	}
	var models map[string]json.RawMessage
	if err := json.Unmarshal(b, &models); err != nil {
		return nil, fmt.Errorf("prices: not a JSON object: %w", err)
	}
	all := Prices{}
	for name, v := range models {
		o := chat.ObjectOf(v)
		input, ok := number(o["input_cost_per_token"])
		output, also := number(o["output_cost_per_token"])
		if !ok || !also {
			continue
		}
		p := Price{input, input, input, output}
		if read, ok := number(o["cache_read_input_token_cost"]); ok {
			p.CacheRead = read
		}
		if written, ok := number(o["cache_creation_input_token_cost"]); ok {
			p.CacheWrite = written
		}
		all[name] = p
	}
	if len(all) == 0 {
		return nil, errors.New(`prices: no model has "input_cost_per_token" and "output_cost_per_token"`)
	}
	return all, nil
}

// Of returns the price of a model: by its name, by its name without a provider, or by the longest pattern that matches.
func (p Prices) Of(model string) (Price, bool) {
	base := model[strings.LastIndexByte(model, '/')+1:]
	for _, name := range []string{model, base} {
		if price, ok := p[name]; ok {
			return price, true
		}
	}
	best := ""
	for pattern := range p {
		if len(pattern) < len(best) || len(pattern) == len(best) && pattern > best || !strings.Contains(pattern, "*") {
			continue
		}
		for _, name := range []string{model, base} {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				best = pattern
			}
		}
	}
	price, ok := p[best]
	return price, ok
}

// Charge sets the cost of a step whose cost is not recorded, if the price of its model is known.
func (s *Step) Charge(p Prices) {
	price, ok := p.Of(s.Model)
	if s.Priced || !ok {
		return
	}
	s.Cost = float64(s.fresh)*price.Input + float64(s.CacheRead)*price.CacheRead + float64(s.CacheWrite)*price.CacheWrite +
		float64(s.said)*price.Output
	s.Priced = true
}
