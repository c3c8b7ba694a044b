package usage

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ctxdir/ctxdir/transcript"
)

// Rates are prices in US dollars for a token.
type Rates struct {
	Input          float64
	CacheRead      float64
	CacheWrite     float64 // for a few minutes
	CacheWriteHour float64 // for an hour
	Output         float64
}

// Price is what a model costs.
type Price struct {
	Rates
	Tiers []Tier // of long inputs, the shortest first
}

// Tier has the rates of all tokens of a call that sends more than Above tokens, those in the cache included.
type Tier struct {
	Above int64
	Rates
}

// Prices are the prices of models by name. A name may be a pattern with *; see [Prices.Of].
type Prices map[string]Price

// maxPrices bounds a file of prices, in bytes.
const maxPrices = 64 << 20

// ReadPrices reads the prices of models from JSON in the form of LiteLLM's file model_prices_and_context_window.json:
//
//	{"claude-opus-4-5*": {"input_cost_per_token": 5e-06, "cache_read_input_token_cost": 5e-07,
//	  "cache_creation_input_token_cost": 6.25e-06, "cache_creation_input_token_cost_above_1hr": 1e-05,
//	  "output_cost_per_token": 2.5e-05}}
//
// Long inputs have members such as input_cost_per_token_above_200k_tokens, or a list tiered_pricing. Tokens of a cache
// without a price cost as much as other input, and an hour in the cache at least as much as a few minutes. Models without
// prices for input and output are left out.
func ReadPrices(r io.Reader) (Prices, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrices+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPrices {
		return nil, fmt.Errorf("prices: the file exceeds the limit of %d bytes", maxPrices)
	}
	var models map[string]json.RawMessage
	if err := json.Unmarshal(b, &models); err != nil {
		return nil, fmt.Errorf("prices: not a JSON object: %w", err)
	}
	all := Prices{}
	for name, v := range models {
		if p, ok := priceIn(transcript.ObjectOf(v)); ok {
			all[name] = p
		}
	}
	if len(all) == 0 {
		return nil, errors.New(`prices: no model has "input_cost_per_token" and "output_cost_per_token"`)
	}
	return all, nil
}

func priceIn(o transcript.Object) (p Price, ok bool) {
	p.Rates, ok = ratesIn(func(member string) (float64, bool) { return number(o[member]) })
	for member := range o {
		rest, is := strings.CutPrefix(member, "input_cost_per_token_above_")
		digits, also := strings.CutSuffix(rest, "k_tokens")
		thousands, err := strconv.ParseUint(digits, 10, 32)
		if !is || !also || err != nil {
			continue
		}
		suffix := "_above_" + rest
		rates, _ := ratesIn(func(member string) (float64, bool) {
			if rate, ok := number(o[member+suffix]); ok {
				return rate, true
			}
			return number(o[member])
		})
		p.Tiers = append(p.Tiers, Tier{int64(thousands) * 1000, rates})
	}
	for _, v := range transcript.List(o["tiered_pricing"]) {
		row := transcript.ObjectOf(v)
		between := transcript.List(row["range"])
		rates, priced := ratesIn(func(member string) (float64, bool) { return number(row[member]) })
		if !priced || len(between) == 0 {
			continue
		}
		if above, is := number(between[0]); is && above > 0 {
			p.Tiers = append(p.Tiers, Tier{int64(above), rates})
		} else if is && !ok {
			p.Rates, ok = rates, true
		}
	}
	slices.SortFunc(p.Tiers, func(a, b Tier) int { return cmp.Compare(a.Above, b.Above) })
	return p, ok
}

// ratesIn makes rates of the members that a function returns. ok is false without prices for input and output.
func ratesIn(stated func(member string) (float64, bool)) (r Rates, ok bool) {
	or := func(member string, otherwise float64) float64 {
		if rate, ok := stated(member); ok {
			return rate
		}
		return otherwise
	}
	input, hasInput := stated("input_cost_per_token")
	output, hasOutput := stated("output_cost_per_token")
	r = Rates{Input: input, Output: output}
	r.CacheRead = or("cache_read_input_token_cost", input)
	r.CacheWrite = or("cache_creation_input_token_cost", input)
	r.CacheWriteHour = max(or("cache_creation_input_token_cost_above_1hr", 0), r.CacheWrite)
	return r, hasInput && hasOutput
}

//go:embed prices.json
var published []byte

var readPublished = sync.OnceValues(func() (prices Prices, month string) {
	var head struct {
		About struct{ Date string }
	}
	prices, err := ReadPrices(strings.NewReader(string(published)))
	if err = errors.Join(err, json.Unmarshal(published, &head)); err != nil {
		panic(err) // a test reads them
	}
	return prices, head.About.Date
})

// PublishedPrices returns the list prices that providers published, and their month, such as "2026-07". They come with
// the package: it fetches nothing.
func PublishedPrices() (prices Prices, month string) {
	prices, month = readPublished()
	return maps.Clone(prices), month
}

// Charge computes the cost of a step from prices, if its tool recorded none and the model has a price. A later call with
// other prices changes nothing.
func (s *Step) Charge(p Prices) {
	if s.Priced {
		return
	}
	if price, ok := p.Of(s.Model); ok {
		s.Cost, s.Priced, s.Computed = s.costAt(price.ratesOf(s)), true, true
	}
}

// Of returns the price of a model, by its name in a record. The name is looked up as it is, then without what may follow
// it, then without what may stand before it; the first that has a price counts, so the longest:
//
//	claude-opus-4-5-20251101                            the date of a version: -20251101, -2025-11-01, @20251101
//	anthropic.claude-opus-4-5-20251101-v1:0             -v1:0, -v1, @default and [1m], too
//	anthropic/claude-opus-4.5, openai/gpt-5, models/…   a maker, an API of its prices, or both
//	us.anthropic.claude-…, ollama/…, groq/…             not known to have the maker's prices: only by the whole name
//
// Case does not matter, and a dash may stand for a dot. Nothing else is cut off: gpt-5 is not a price of gpt-5-mini. Then
// the longest pattern that matches one of these names counts.
func (p Prices) Of(model string) (Price, bool) {
	names := spellings(model)
	for _, name := range names {
		if price, ok := p[name]; ok {
			return price, true
		}
	}
	best := ""
	for pattern := range p {
		if len(pattern) < len(best) || len(pattern) == len(best) && pattern > best || !strings.Contains(pattern, "*") {
			continue
		}
		for _, name := range names {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				best = pattern
			}
		}
	}
	price, ok := p[best]
	return price, ok && best != ""
}

// ratesOf returns the rates of a step. Those of long inputs do not count for calls that a tool records only together.
func (p *Price) ratesOf(s *Step) Rates {
	rates := p.Rates
	if sent := plus(s.fresh, plus(s.CacheRead, s.CacheWrite)); s.Calls == 1 {
		for _, t := range p.Tiers {
			if sent > t.Above {
				rates = t.Rates
			}
		}
	}
	return rates
}

// costAt returns the cost of tokens.
func (t *Tokens) costAt(r Rates) float64 {
	hour := min(t.hour, t.CacheWrite)
	return float64(t.fresh)*r.Input + float64(t.CacheRead)*r.CacheRead + float64(t.CacheWrite-hour)*r.CacheWrite +
		float64(hour)*r.CacheWriteHour + float64(t.said)*r.Output
}
