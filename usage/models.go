package usage

import (
	"path"
	"regexp"
	"strings"
)

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

// providers are the first labels of names that are priced as without them: makers of models, and APIs that charge their
// prices.
var providers = map[string]bool{
	"anthropic": true, "openai": true, "google": true, "gemini": true, "models": true, "publishers": true, "vertex_ai": true,
	"vertex": true, "azure": true, "azure_ai": true, "bedrock": true, "converse": true, "global": true, "xai": true, "x-ai": true,
	"deepseek": true, "deepseek-ai": true, "dashscope": true, "alibaba": true, "qwen": true, "mistral": true, "mistralai": true,
	"moonshot": true, "moonshotai": true, "zai": true, "z-ai": true, "zai-org": true, "minimax": true, "minimaxai": true,
	"openrouter": true, "litellm": true, "litellm_proxy": true,
}

// afterName is what may follow the name of a model.
var afterName = regexp.MustCompile(`(?:[-@]20[2-9]\d-?[01]\d-?[0-3]\d|-v\d(?::\d+)?|@default|\[1m\])$`)

// spellings returns the forms of the name under which a model may have a price, the most specific one first.
func spellings(model string) (names []string) {
	for known := model != ""; known; model, known = withoutProvider(model) {
		for name := model; ; {
			lower := strings.ToLower(name)
			names = append(names, name, lower, strings.ReplaceAll(lower, ".", "-"))
			end := afterName.FindStringIndex(name)
			if end == nil || end[0] == 0 {
				break
			}
			name = name[:end[0]]
		}
	}
	return names
}

// withoutProvider cuts off the first label of a name. known is false if that is not one of providers, or nothing is left.
func withoutProvider(model string) (rest string, known bool) {
	if _, publisher, is := strings.Cut(model, "/publishers/"); is && strings.HasPrefix(model, "projects/") { // Vertex AI
		return publisher, publisher != ""
	}
	i := strings.IndexAny(model, "/.")
	if i < 0 {
		return "", false
	}
	label := strings.ToLower(model[:i])
	rest = model[i+1:]
	return rest, rest != "" && (providers[label] || strings.HasPrefix(label, "arn:aws:bedrock:"))
}
