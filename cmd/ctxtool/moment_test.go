package main

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// TestMomentTable: the table of moments fits a narrow terminal, and shows ids that rm takes.
func TestMomentTable(t *testing.T) {
	p := newInProcess(t)
	do := func(args ...string) {
		t.Helper()
		if code := p.run(t.Context(), "", args...); code != 0 {
			t.Fatalf("%q: %d: %s", args, code, p.stderr.String())
		}
	}
	do("new", "--id", walkID)
	do("moment", "add", walkID, "--type", "solution", "--relevance", "0.25", strings.Repeat("It is a long sentence. ", 20))
	do("moment", "add", walkID, "--type", "decision", "We keep the queue in memory.")
	screen := &screen{columns: 80, rows: 24}
	if code := run(t.Context(), []string{"moment", "ls"}, strings.NewReader(""), screen, &strings.Builder{}, p.env); code != 0 {
		t.Fatal(code)
	}
	lines := strings.Split(strings.TrimRight(screen.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	for _, line := range lines {
		if uniseg.StringWidth(stripped(line)) > 80 {
			t.Errorf("too long: %q", line)
		}
	}
	id, rest, _ := strings.Cut(lines[1], " ")
	if !strings.Contains(rest, "decision       0.50  We keep the queue in memory.") {
		t.Errorf("%q", lines[1])
	}
	do("moment", "rm", id)
	do("moment", "ls")
	if got := p.stdout.String(); strings.Count(got, `"record":"moment"`) != 1 || !strings.Contains(got, "long sentence") {
		t.Errorf("after rm %s: %s", id, got)
	}
}

// stripped is a line without colours.
func stripped(line string) string {
	for {
		before, rest, ok := strings.Cut(line, "\x1b[")
		if !ok {
			return line
		}
		_, after, _ := strings.Cut(rest, "m")
		line = before + after
	}
}
