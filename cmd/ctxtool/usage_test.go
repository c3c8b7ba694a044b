package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUsageTable: a table fits 80 columns, and leaves out what nothing records.
func TestUsageTable(t *testing.T) {
	p := newInProcess(t)
	must := func(stdin string, args ...string) {
		if code := p.run(t.Context(), stdin, args...); code != exitOK {
			t.Fatal(p.stderr.String())
		}
	}
	must("", "new", "--id", exampleID)
	var lines strings.Builder
	for i, model := range []string{"claude-opus-4-5-20251101-with-a-long-name", "claude-haiku-4-5", "claude-haiku-4-5"} {
		fmt.Fprintf(&lines, `{"type":"assistant","message":{"id":"msg_0123456789abcdef%d","model":%q,"usage":{"input_tokens":%d,`+
			`"output_tokens":25,"cache_read_input_tokens":1234567,"cache_creation_input_tokens":0,"cost":0.5}}}`+"\n", i, model, 1000-i)
	}
	must(lines.String(), "append", exampleID, "--jsonl")
	must("", "new", "--id", exampleItem)
	must(`{"role":"assistant","content":"Hello."}`, "append", exampleItem, "--jsonl")
	want := `MODEL                            STEPS   INPUT  CACHED  OUTPUT   TOTAL      COST
claude-haiku-4-5                     2   2.00k   2.47M      50   2.47M     $1.00
claude-opus-4-5…ith-a-long-name      1   1.00k   1.23M      25   1.24M     $0.50
(unknown)                            1       0       0      ~2      ~2  unpriced
total                                4  ~3.00k   3.70M     ~77  ~3.71M    $1.50+
`
	if diff := cmp.Diff(want, p.onScreen(t, "usage")); diff != "" {
		t.Error(diff)
	}

	// stats have the same figures. Sizes depend on the file system.
	stats := p.onScreen(t, "stats")
	if head := "\n2 contexts · 4 messages · ~3.71M tokens · $1.50+ · 2 models\n"; !strings.Contains(stats, head) {
		t.Errorf("%s: no %s", stats, head)
	}
	row := regexp.MustCompile(`(?m)^\(none\) +2 +4 +~3.71M  \$1.50\+  claude-haiku-4-5, claude-…  now$`)
	if !row.MatchString(stats) {
		t.Errorf("%s: no %s", stats, row)
	}
	for line := range strings.Lines(stats) {
		if n := len([]rune(line)); n > 81 && !strings.HasPrefix(line, p.store) {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if one := p.onScreen(t, "stats", "--contexts", "--limit", "1"); !strings.Contains(one, "\n… 1 more\n") {
		t.Error(one)
	}
}

// TestUsageTableOfLongNames: the names of models stay whole, and lesser columns give way, as far as that helps.
func TestUsageTableOfLongNames(t *testing.T) {
	p := newInProcess(t)
	if code := p.run(t.Context(), "", "new", "--id", exampleID); code != exitOK {
		t.Fatal(p.stderr.String())
	}
	line := `{"type":"assistant","message":{"id":"msg_0123456789abcdef%d","model":"%s","usage":{"input_tokens":1234567,` +
		`"output_tokens":1234567,"cache_read_input_tokens":1234567,"cache_creation_input_tokens":1234567,"reasoning":123456}}}` + "\n"
	lines := fmt.Sprintf(line, 1, "claude-sonnet-4-5-20250929") + fmt.Sprintf(line, 2, "claude-sonnet-4-20250514")
	if code := p.run(t.Context(), lines, "append", exampleID, "--jsonl"); code != exitOK {
		t.Fatal(p.stderr.String())
	}
	want := `MODEL                       STEPS  INPUT  CACHED  OUTPUT  TOTAL    COST
claude-sonnet-4-5-20250929      1  1.23M   1.23M   1.23M  4.94M  $45.19
claude-sonnet-4-20250514        1  1.23M   1.23M   1.23M  4.94M  $45.19
total                           2  2.47M   2.47M   2.47M  9.88M  $90.37
`
	if diff := cmp.Diff(want, p.onScreen(t, "usage")); diff != "" {
		t.Error(diff)
	}
}

// onScreen returns what a verb shows on a terminal of 80 columns, without colours.
func (p *inProcess) onScreen(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr := &screen{columns: 80, rows: 24}, &strings.Builder{}
	env := func(key string) string {
		if key == "NO_COLOR" {
			return "1"
		}
		return p.env(key)
	}
	if code := run(t.Context(), args, strings.NewReader(""), stdout, stderr, env); code != exitOK {
		t.Fatal(stderr.String())
	}
	return stdout.String()
}
