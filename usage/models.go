package usage

import (
	"regexp"
	"strings"
)

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
