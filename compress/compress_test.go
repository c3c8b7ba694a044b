package compress_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/compress"
)

var conversation = []string{
	"The import is slow. It opens a transaction for every row of the import.",
	"I looked at the import. One transaction for a thousand rows makes the import twenty times faster.\n\n```go\nfunc secretCode() {}\n```",
	"The weather is fine.\n\nWe decided to keep one transaction for a thousand rows.",
}

func TestLocalSummary(t *testing.T) {
	summary, err := compress.Local{}.Summary(t.Context(), conversation, 60)
	if err != nil {
		t.Fatal(err)
	}
	if n := compress.Estimate(summary); n > 60 || n < 20 {
		t.Errorf("%d tokens: %q", n, summary)
	}
	all := strings.Join(conversation, " ")
	last := -1
	for line := range strings.Lines(summary) {
		at := strings.Index(all, strings.TrimSpace(line))
		if at <= last {
			t.Errorf("%q is not in the conversation, or not in order", line)
		}
		last = at
	}
	if strings.Contains(summary, "weather") || strings.Contains(summary, "secretCode") || !strings.Contains(summary, "transaction") {
		t.Errorf("summary %q", summary)
	}
	again, err := compress.Local{}.Summary(t.Context(), conversation, 60)
	if err != nil || again != summary {
		t.Errorf("again: %q, %v", again, err)
	}
	for _, budget := range []int{-1, 0, 3} {
		if none, err := (compress.Local{}).Summary(t.Context(), conversation, budget); err != nil || none != "" {
			t.Errorf("with %d tokens: %q, %v", budget, none, err)
		}
	}
}

// TestLocalCounts: the summary fits by the caller's own count, which need not be the sum of its sentences.
func TestLocalCounts(t *testing.T) {
	words := func(text string) int { return len(strings.Fields(text)) + strings.Count(text, "\n")*3 }
	for budget := range 60 {
		summary, err := compress.Local{Tokens: words}.Summary(t.Context(), conversation, budget)
		if err != nil || words(summary) > budget {
			t.Errorf("with %d words: %d, %v", budget, words(summary), err)
		}
	}
}

type fixed struct {
	text string
	err  error
}

func (f fixed) Summary(context.Context, []string, int) (string, error) { return f.text, f.err }

func TestHybridFallsBack(t *testing.T) {
	local, err := compress.Local{}.Summary(t.Context(), conversation, 60)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		remote fixed
		want   string
	}{
		"better": {fixed{text: "One transaction for many rows."}, "One transaction for many rows."},
		"fails":  {fixed{err: compress.ErrRemote}, local},
		"empty":  {fixed{}, local},
	} {
		var failed error
		got, err := compress.Hybrid{Remote: x.remote, Failed: func(err error) { failed = err }}.Summary(t.Context(), conversation, 60)
		if err != nil || got != x.want || !errors.Is(failed, x.remote.err) {
			t.Errorf("%s: %q, %v, failed %v", name, got, err, failed)
		}
	}
}

func TestModes(t *testing.T) {
	e := &compress.Endpoint{}
	for _, x := range []struct {
		mode     string
		endpoint *compress.Endpoint
		ok       bool
	}{
		{"", nil, true}, {"local", nil, true}, {"remote", e, true}, {"hybrid", e, true}, {"remote", nil, false},
		{"hybrid", nil, false}, {"zip", e, false},
	} {
		c, err := compress.New(x.mode, x.endpoint, nil)
		if (err == nil) != x.ok || (c != nil) != x.ok {
			t.Errorf("%q: %v, %v", x.mode, c, err)
		}
	}
}
