package usage

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/ctxdir/ctxdir/transcript"
)

// maxCount bounds a count in a record: a larger one is damage.
const maxCount = 1 << 40

// memberNames are the names of a count in the records of tools and providers. A path names a member of a member.
var memberNames = struct {
	input, toolInput, output, cacheRead, cachedInput, cacheWrite, hour, writtenInput, reasoning, thoughts [][]string
}{
	input:     paths("input_tokens", "prompt_tokens", "input", "inputTokens", "promptTokens", "promptTokenCount", "tokens_sent"),
	toolInput: paths("tool", "toolUsePromptTokenCount"),
	output: paths(
		"output_tokens", "completion_tokens", "output", "outputTokens", "completionTokens", "candidatesTokenCount", "tokens_received",
	),
	cacheRead: append(paths("cache_read_input_tokens", "cacheRead"), []string{"cache", "read"}),
	cachedInput: append( // a part of the input
		paths("cached_input_tokens", "cached", "cachedInputTokens", "cachedContentTokenCount", "cache_read_tokens", "cacheReadTokens"),
		[]string{"prompt_tokens_details", "cached_tokens"}, []string{"prompt_token_details", "cached_tokens"},
		[]string{"input_tokens_details", "cached_tokens"},
		[]string{"input_token_details", "cache_read"},
	),
	cacheWrite: append(paths("cache_creation_input_tokens", "cacheWrite"), []string{"cache", "write"}),
	hour:       [][]string{{"cache_creation", "ephemeral_1h_input_tokens"}},
	writtenInput: append( // a part of the input
		paths("cache_write_tokens", "cacheWriteTokens"), []string{"input_token_details", "cache_creation"},
	),
	reasoning: append( // a part of the output
		paths("reasoning_output_tokens", "reasoning", "reasoningTokens", "reasoning_tokens"),
		[]string{"completion_tokens_details", "reasoning_tokens"}, []string{"output_tokens_details", "reasoning_tokens"},
		[]string{"output_token_details", "reasoning"},
	),
	thoughts: paths("thoughts", "thoughtsTokenCount"), // beside the output
}

func paths(names ...string) (all [][]string) {
	for _, name := range names {
		all = append(all, []string{name})
	}
	return all
}

// tokensOf reads an object with counts, in the form of any tool or provider. ok is false if it has neither an input nor
// an output.
func tokensOf(v json.RawMessage) (t Tokens, ok bool) {
	o := transcript.ObjectOf(v)
	if o == nil {
		return t, false
	}
	names := &memberNames
	input, hasInput := countIn(o, names.input)
	output, hasOutput := countIn(o, names.output)
	if !hasInput && !hasOutput {
		return t, false
	}
	tool, _ := countIn(o, names.toolInput)
	read, apart := countIn(o, names.cacheRead)
	written, _ := countIn(o, names.cacheWrite)
	hour, _ := countIn(o, names.hour)
	t = Tokens{Input: input, CacheRead: read, CacheWrite: written, Output: output, fresh: input + tool, said: output, hour: hour}
	if !apart {
		t.CacheRead, _ = countIn(o, names.cachedInput)
		if w, ok := countIn(o, names.writtenInput); ok {
			t.CacheWrite = w
		}
		if inside := t.CacheRead + t.CacheWrite; inside <= input {
			t.fresh -= inside
		}
	}
	if thoughts, beside := countIn(o, names.thoughts); beside {
		t.Reasoning = thoughts
		t.said += thoughts
	} else {
		t.Reasoning, _ = countIn(o, names.reasoning)
	}
	t.Total = t.fresh + t.CacheRead + t.CacheWrite + t.said
	return t, true
}

// countIn returns the first of the members that is a count.
func countIn(o transcript.Object, names [][]string) (int64, bool) {
	for _, path := range names {
		in := o
		for _, name := range path[:len(path)-1] {
			in = transcript.ObjectOf(in[name])
		}
		if f, ok := number(in[path[len(path)-1]]); ok {
			return int64(f), true
		}
	}
	return 0, false
}

// number reads a JSON number from 0 to maxCount.
func number(v json.RawMessage) (float64, bool) {
	if k := transcript.KindOf(v); k < '0' || k > '9' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil && f >= 0 && f <= maxCount && !math.IsNaN(f)
}
