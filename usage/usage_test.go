package usage_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/usage"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func newStore(t *testing.T) *ctxdir.Store {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir(), ctxdir.Options{RelaxedDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// steps yields the steps of contexts, counted together.
func steps(t *testing.T, s *ctxdir.Store, ids ...uuid.UUID) iter.Seq[usage.Step] {
	t.Helper()
	return func(yield func(usage.Step) bool) {
		n := usage.NewCounter(s)
		for _, id := range ids {
			c, err := s.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for step, err := range n.Steps(t.Context(), c) {
				if err != nil {
					t.Fatal(err)
				}
				if !yield(step) {
					return
				}
			}
			c.Close()
		}
	}
}

// newContext is a context with these messages on its branch.
func newContext(t *testing.T, s *ctxdir.Store, m ctxdir.Metadata, bodies ...string) *ctxdir.Context {
	t.Helper()
	c, err := s.Create(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	add(t, c.Active(), bodies...)
	return c
}

func add(t *testing.T, b *ctxdir.Branch, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if _, err := b.Append(t.Context(), ctxdir.Draft{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
}

// shape is a step in brief.
func shape(s usage.Step) string {
	text := fmt.Sprintf("%s %d %d %d %d %d = %d", s.Model, s.Input, s.CacheRead, s.CacheWrite, s.Output, s.Reasoning, s.Total)
	if s.Priced {
		text += fmt.Sprintf(" $%g", s.Cost)
	}
	if s.Calls != 1 {
		text += fmt.Sprintf(" %d calls", s.Calls)
	}
	if s.Estimated {
		text += " estimated"
	}
	return text
}

func shapes(t *testing.T, s *ctxdir.Store, ids ...uuid.UUID) (all []string) {
	t.Helper()
	for step := range steps(t, s, ids...) {
		all = append(all, shape(step))
	}
	return all
}

const (
	claudeLine = `{"type":"assistant","sessionId":"s","uuid":"u%d","message":{"id":"msg_0123456789abcdef%d","role":"assistant","model":"m",` +
		`"content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":1,"cache_read_input_tokens":20,` +
		`"cache_creation_input_tokens":300,"output_tokens":%d}}}`
	codexCount = `{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":` +
		`{"input_tokens":%d,"n":%d},"last_token_usage":` +
		`{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5,"reasoning_output_tokens":2,"total_tokens":15}}}}`
)

func TestRecords(t *testing.T) {
	stepPart := func(cost string) string {
		return `{"type":"step-finish","cost":` + cost + `,"tokens":{"input":1,"output":2,"reasoning":1,"cache":{"read":30,"write":4}}}`
	}
	sums := func(cost, counts string) string {
		return `{"source":"agent","action":"run","llm_metrics":{"accumulated_cost":` + cost + `,"accumulated_token_usage":` + counts + `}}`
	}
	action := func(name string) string {
		return `{"source":"agent","action":"` + name + `","tool_call_metadata":{"model_response":` +
			`{"id":"chatcmpl-0123456789","model":"m","usage":{"prompt_tokens":10,"completion_tokens":1}}}}`
	}
	tests := []struct {
		name   string
		bodies []string
		want   []string
	}{
		{
			"lines of one reply of Claude Code",
			[]string{fmt.Sprintf(claudeLine, 1, 1, 4), fmt.Sprintf(claudeLine, 2, 1, 50), fmt.Sprintf(claudeLine, 3, 2, 5)},
			[]string{"m 1 20 300 50 0 = 371", "m 1 20 300 5 0 = 326"},
		},
		{
			"lines of one reply with other records between",
			[]string{fmt.Sprintf(claudeLine, 1, 1, 4), fmt.Sprintf(claudeLine, 3, 2, 5), fmt.Sprintf(claudeLine, 2, 1, 50)},
			[]string{"m 1 20 300 50 0 = 371", "m 1 20 300 5 0 = 326"},
		},
		{
			"a sub-agent of Claude Code, and the result that repeats it",
			[]string{
				`{"type":"progress","sessionId":"s","data":{"message":` + fmt.Sprintf(claudeLine, 1, 1, 4) + `}}`,
				`{"type":"user","sessionId":"s","message":{"role":"user","content":"x"},` +
					`"toolUseResult":{"usage":{"input_tokens":1,"output_tokens":4}}}`,
			},
			[]string{"m 1 20 300 4 0 = 325"},
		},
		{
			"a message that Claude Code made up",
			[]string{
				strings.Replace(fmt.Sprintf(claudeLine, 1, 1, 4), `"model":"m"`, `"model":"<synthetic>"`, 1), fmt.Sprintf(claudeLine, 2, 2, 4),
			},
			[]string{"m 1 20 300 4 0 = 325"},
		},
		{
			"repeated totals of Codex", []string{
				`{"timestamp":"t","type":"turn_context","payload":{"model":"gpt"}}`, fmt.Sprintf(codexCount, 10, 1), fmt.Sprintf(codexCount, 10, 1),
				`{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":null}}`, fmt.Sprintf(codexCount, 20, 1),
			},
			[]string{"gpt 10 4 0 5 2 = 15", "gpt 10 4 0 5 2 = 15"},
		},
		{
			"steps of opencode",
			[]string{`{"info":{"modelID":"m","time":{"created":1},"cost":9,"tokens":{"input":9,"output":9}},"parts":[` +
				stepPart("0.5") + `,{"type":"text","text":"x"},` + stepPart("0.25") + `]}`},
			[]string{"m 1 30 4 2 1 = 37 $0.5", "m 1 30 4 2 1 = 37 $0.25"},
		},
		{
			"a message of opencode without steps",
			[]string{`{"info":{"modelID":"m","cost":0.5,"tokens":{"input":1,"output":2,"reasoning":0,"cache":{"read":0,"write":0}}},"parts":[]}`},
			[]string{"m 1 0 0 2 0 = 3 $0.5"},
		},
		{
			"Gemini CLI",
			[]string{`{"id":"1","type":"gemini","model":"g","content":"x",` +
				`"tokens":{"input":12,"output":3,"cached":2,"thoughts":4,"tool":5,"total":24}}`},
			[]string{"g 12 2 0 3 4 = 24"},
		},
		{
			"pi",
			[]string{`{"type":"message","timestamp":"t","message":{"role":"assistant","model":"m","usage":` +
				`{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.125}}}}`},
			[]string{"m 1 3 4 2 0 = 10 $0.125"},
		},
		{
			"Copilot CLI: totals at the end",
			[]string{`{"type":"session.shutdown","id":"1","data":{"modelMetrics":{` +
				`"b":{"requests":{"count":3,"cost":1},"usage":{"inputTokens":100,"outputTokens":5,"cacheReadTokens":40,"cacheWriteTokens":0}},` +
				`"a":{"requests":{"count":1},"usage":{"inputTokens":1,"outputTokens":2}}}}}`},
			[]string{"a 1 0 0 2 0 = 3", "b 100 40 0 5 0 = 105 3 calls"},
		},
		{
			"Copilot CLI: calls",
			[]string{
				`{"type":"assistant.usage","id":"1","data":{"model":"m","inputTokens":10,"outputTokens":5,"cacheReadTokens":4}}`,
				`{"type":"session.shutdown","id":"2","data":{"modelMetrics":{"m":{"usage":{"inputTokens":10,"outputTokens":5}}}}}`,
			},
			[]string{"m 10 4 0 5 0 = 15"},
		},
		{
			"sums of OpenHands",
			[]string{
				sums(`0.5`, `{"prompt_tokens":10,"completion_tokens":1}`),
				sums(`0.5`, `{"prompt_tokens":10,"completion_tokens":1}`),
				sums(`0.75`, `{"prompt_tokens":30,"completion_tokens":4,"cache_read_tokens":8}`),
			},
			[]string{" 10 0 0 1 0 = 11 $0.5", " 20 8 0 3 0 = 23 $0.25"},
		},
		{
			"a call of OpenHands with several actions",
			[]string{
				action("run"), action("read"),
			},
			[]string{"m 10 0 0 1 0 = 11"},
		},
		{
			"OpenAI chat",
			[]string{`{"role":"assistant","content":"x","model":"m","usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,` +
				`"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}`},
			[]string{"m 10 4 0 5 3 = 15"},
		},
		{
			"equal counts of two messages",
			[]string{
				`{"role":"assistant","content":"x","usage":{"prompt_tokens":1,"completion_tokens":1}}`,
				`{"role":"assistant","content":"y","usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			},
			[]string{" 1 0 0 1 0 = 2", " 1 0 0 1 0 = 2"},
		},
		{
			"OpenAI responses",
			[]string{`{"role":"assistant","content":"x","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,` +
				`"output_tokens_details":{"reasoning_tokens":3}}}`},
			[]string{" 10 4 0 5 3 = 15"},
		},
		{
			"ADK",
			[]string{`{"id":"e","author":"a","modelVersion":"g","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,` +
				`"cachedContentTokenCount":4,"thoughtsTokenCount":3,"totalTokenCount":18}}`},
			[]string{"g 10 4 0 5 3 = 18"},
		},
		{
			"LangChain",
			[]string{`{"type":"ai","data":{"content":"x","usage_metadata":{"input_tokens":10,"output_tokens":5,"input_token_details":` +
				`{"cache_read":4,"cache_creation":1}},"response_metadata":{"model_name":"m"}}}`},
			[]string{"m 10 4 1 5 0 = 15"},
		},
		{
			"Eino",
			[]string{`{"role":"assistant","content":"x","response_meta":{"usage":{"prompt_tokens":10,` +
				`"prompt_token_details":{"cached_tokens":4},"completion_tokens":5,"total_tokens":15}}}`},
			[]string{" 10 4 0 5 0 = 15"},
		},
		{
			"an id that is none",
			[]string{
				`{"role":"assistant","id":"a","usage":{"prompt_tokens":10,"completion_tokens":1}}`,
				`{"role":"assistant","id":"a","usage":{"prompt_tokens":20,"completion_tokens":1}}`,
			},
			[]string{" 10 0 0 1 0 = 11", " 20 0 0 1 0 = 21"},
		},
		{
			"mini-swe-agent",
			[]string{`{"role":"assistant","content":"x","extra":{"cost":0.5,` +
				`"response":{"id":"1","model":"m","usage":{"prompt_tokens":3,"completion_tokens":4}}}}`},
			[]string{"m 3 0 0 4 0 = 7 $0.5"},
		},
		{
			"hostile counts",
			[]string{
				`{"role":"assistant","content":"","usage":{"input_tokens":-5,"output_tokens":1e300}}`,
				`{"role":"assistant","content":"","usage":{"input_tokens":"7","output_tokens":[]}}`,
				`{"role":"assistant","content":"","usage":{"input_tokens":7,"cached_input_tokens":9,"output_tokens":1}}`,
			},
			[]string{" 7 9 0 1 0 = 17"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t)
			c := newContext(t, s, ctxdir.Metadata{}, test.bodies...)
			if diff := cmp.Diff(test.want, shapes(t, s, c.ID())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLowThreshold: the texts that records need may be in blobs.
func TestLowThreshold(t *testing.T) {
	s, err := ctxdir.Init(t.TempDir(), ctxdir.Options{TextThreshold: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := newContext(t, s, ctxdir.Metadata{}, fmt.Sprintf(claudeLine, 1, 1, 4), fmt.Sprintf(claudeLine, 2, 1, 50))
	if diff := cmp.Diff([]string{"m 1 20 300 50 0 = 371"}, shapes(t, s, c.ID())); diff != "" {
		t.Error(diff)
	}
}

// TestOnce: forks, copies, archives and sessions that repeat records count once.
func TestOnce(t *testing.T) {
	s := newStore(t)
	var bodies []string
	for i := range 200 {
		bodies = append(bodies, `{"role":"user","content":"next"}`, fmt.Sprintf(claudeLine, i, i, 9), fmt.Sprintf(codexCount, i, 1))
	}
	c := newContext(t, s, ctxdir.Metadata{}, bodies...)
	fork, err := c.Active().Fork(t.Context(), "alt", 300)
	if err != nil {
		t.Fatal(err)
	}
	add(t, fork, fmt.Sprintf(claudeLine, 1000, 1000, 9), fmt.Sprintf(claudeLine, 5, 5, 9))
	const want = 401
	if n := len(shapes(t, s, c.ID())); n != want {
		t.Errorf("with a fork: %d steps, want %d", n, want)
	}
	copied, err := c.Active().Copy(t.Context(), 500, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	again := newContext(t, s, ctxdir.Metadata{ParentID: copied.ID()}, bodies[:30]...)
	other := newContext(t, s, ctxdir.Metadata{}, bodies[:30]...) // another session: only ids of the provider say that it repeats records
	if n := len(shapes(t, s, copied.ID(), c.ID(), again.ID())); n != want {
		t.Errorf("with copies: %d steps, want %d", n, want)
	}
	if n := len(shapes(t, s, again.ID(), copied.ID(), c.ID())); n != want {
		t.Errorf("in another order: %d steps, want %d", n, want)
	}
	if n := len(shapes(t, s, c.ID(), other.ID())); n != want+10 {
		t.Errorf("with another session: %d steps, want %d", n, want+10)
	}
	if _, err := s.Archive(t.Context(), ctxdir.ArchiveOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	if n := len(shapes(t, s, c.ID())); n != want {
		t.Errorf("archived: %d steps, want %d", n, want)
	}
}

// TestShortIDs: a short id is one of the conversation only.
func TestShortIDs(t *testing.T) {
	s := newStore(t)
	reply := `{"role":"assistant","content":"%s","id":"1","usage":{"prompt_tokens":1,"completion_tokens":%d}}`
	a := newContext(t, s, ctxdir.Metadata{}, fmt.Sprintf(reply, "a", 1), fmt.Sprintf(reply, "b", 2))
	b := newContext(t, s, ctxdir.Metadata{}, fmt.Sprintf(reply, "a", 1), fmt.Sprintf(reply, "b", 2))
	if diff := cmp.Diff([]string{" 1 0 0 2 0 = 3", " 1 0 0 2 0 = 3"}, shapes(t, s, a.ID(), b.ID())); diff != "" {
		t.Error(diff)
	}
}

func TestPrompts(t *testing.T) {
	s := newStore(t)
	call := `{"role":"assistant","content":"x","usage":{"input_tokens":1,"output_tokens":1}}`
	c := newContext(t, s, ctxdir.Metadata{}, `{"role":"user","content":"first"}`, call, `{"role":"tool","content":"y"}`, call,
		`{"role":"user","content":"second"}`, call)
	fork, err := c.Active().Fork(t.Context(), "alt", 3)
	if err != nil {
		t.Fatal(err)
	}
	add(t, fork, call, `{"role":"user","content":"third"}`, call)
	var got []string
	for step := range steps(t, s, c.ID()) {
		text, err := usage.PromptText(t.Context(), c, &step)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(step.Branch, " ", step.Position, " ", text))
	}
	want := []string{"main 1 first", "main 3 first", "main 5 second", "alt 3 first", "alt 5 third"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPromptsOfPersons: what an agent tool says in the role of the user is no prompt.
func TestPromptsOfPersons(t *testing.T) {
	call := `{"role":"assistant","content":"x","usage":{"input_tokens":1,"output_tokens":1}}`
	s := newStore(t)
	c := newContext(t, s, ctxdir.Metadata{}, `{"role":"user","content":"first"}`, call,
		`{"role":"user","content":"<local-command-stdout>Done.</local-command-stdout>"}`, call,
		`{"role":"user","content":"<command-name>/quick</command-name><command-args>move the bar</command-args>"}`, call)
	var got []string
	for step := range steps(t, s, c.ID()) {
		text, err := usage.PromptText(t.Context(), c, &step)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{"first", "first", "/quick move the bar"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEstimates(t *testing.T) {
	s := newStore(t)
	long := strings.Repeat("a word or two, ", 2000)
	c := newContext(t, s, ctxdir.Metadata{Config: []byte(`{"model_id":"m"}`)}, `{"role":"user","content":"What is the answer?"}`,
		`{"role":"assistant","content":"It is 42, as everybody knows."}`, `{"role":"user","content":"`+long+`"}`,
		`{"role":"assistant","content":"Well."}`)
	got := slices.Collect(steps(t, s, c.ID()))
	if len(got) != 2 || !got[0].Estimated || got[0].Model != "m" {
		t.Fatalf("%+v", got)
	}
	if in := usage.Estimate("What is the answer?"); got[0].Input != in || in < 4 || in > 6 {
		t.Errorf("input %d, estimate %d", got[0].Input, in)
	}
	// The long text is in a blob; its size says enough.
	if in := got[1].Input; in < int64(len(long))/5 || in > int64(len(long))/3 {
		t.Errorf("input %d of a text of %d bytes", in, len(long))
	}
	// One recorded call, and nothing is estimated.
	add(t, c.Active(), `{"role":"assistant","content":"x","model":"r","usage":{"input_tokens":1,"output_tokens":1}}`)
	if diff := cmp.Diff([]string{"r 1 0 0 1 0 = 2"}, shapes(t, s, c.ID())); diff != "" {
		t.Error(diff)
	}
}

func TestPrices(t *testing.T) {
	prices, err := usage.ReadPrices(strings.NewReader(`{"sample_spec":{"note":"x"},
		"claude-*":{"input_cost_per_token":1,"output_cost_per_token":1},
		"claude-opus-*":{"input_cost_per_token":1,"cache_read_input_token_cost":0.5,
			"cache_creation_input_token_cost":2,"output_cost_per_token":10},
		"gpt-5":{"input_cost_per_token":1,"output_cost_per_token":4}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		model string
		body  string
		cost  float64
		known bool
	}{
		{
			"anthropic/claude-opus-4",
			`{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":5,"output_tokens":6}`, 3 + 2 + 10 + 60, true,
		},
		{"claude-haiku", `{"input_tokens":3,"output_tokens":6}`, 9, true},
		{"gpt-5", `{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}`, 18, true},
		{"gpt-5", `{"prompt_tokens":10,"completion_tokens":2,"cost":7}`, 7, true},
		{"gpt-5.5", `{"prompt_tokens":10,"completion_tokens":2}`, 0, false},
	}
	for _, test := range tests {
		s := newStore(t)
		c := newContext(t, s, ctxdir.Metadata{}, `{"role":"assistant","content":"x","model":"`+test.model+`","usage":`+test.body+`}`)
		for step := range steps(t, s, c.ID()) {
			if step.Charge(prices); step.Priced != test.known || step.Cost != test.cost {
				t.Errorf("%s: cost %g, known %v", test.model, step.Cost, step.Priced)
			}
		}
	}
	for _, bad := range []string{"", "[]", "{}", `{"m":{"input_cost_per_token":"1","output_cost_per_token":-1}}`} {
		if _, err := usage.ReadPrices(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestManySteps: a message may have more than a hundred steps.
func TestManySteps(t *testing.T) {
	s := newStore(t)
	part := `{"type":"step-finish","cost":0.5,"tokens":{"input":1,"output":2,"reasoning":0,"cache":{"read":3,"write":0}}}`
	c := newContext(t, s, ctxdir.Metadata{},
		`{"info":{"role":"assistant","time":{"created":1}},"parts":[`+strings.Repeat(part+",", 299)+part+`]}`)
	var sum usage.Sum
	for step := range steps(t, s, c.ID()) {
		sum.Add(&step)
	}
	if sum.Steps != 300 || sum.Total != 1800 || sum.Cost != 150 || sum.Unpriced != 0 {
		t.Errorf("%+v", sum)
	}
}
