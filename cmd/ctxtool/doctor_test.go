package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/place"
	"github.com/ctxdir/ctxdir/internal/term"
)

// TestDiagnosis: a warning or an error fails the verb, an info does not.
func TestDiagnosis(t *testing.T) {
	ok := place.Finding{Kind: "a", Severity: place.OK, Detail: "fine"}
	info := place.Finding{Kind: "b", Severity: place.Info, Detail: "good\nto know", Path: "in/it"}
	warning := place.Finding{Kind: "file-system", Severity: place.Warning, Detail: "bad", Hint: "move"}
	failing := place.Finding{Kind: "a", Severity: place.Error, Detail: "worse"}
	tests := []struct {
		found        []place.Finding
		text         string
		summary, err string
	}{
		{nil, "", `{"record":"summary","findings":0,"by_kind":{},"problems":0}`, ""},
		{
			[]place.Finding{ok, info}, "ok       a            fine\ninfo     b            in/it: good to know\n",
			`{"record":"summary","findings":2,"by_kind":{"a":1,"b":1},"problems":0}`, "",
		},
		{
			[]place.Finding{ok, warning}, "ok       a            fine\nwarning  file-system  bad\n                      move\n",
			`{"record":"summary","findings":2,"by_kind":{"a":1,"file-system":1},"problems":1}`, "found 1 problem",
		},
		{
			[]place.Finding{ok, failing, warning},
			"ok       a            fine\nerror    a            worse\nwarning  file-system  bad\n                      move\n",
			`{"record":"summary","findings":3,"by_kind":{"a":2,"file-system":1},"problems":2}`,
			"found 2 problems",
		},
	}
	for _, test := range tests {
		var text, lines strings.Builder
		forPeople, forPrograms := &app{out: term.NewOutput(&text, term.NoColours)}, &app{out: term.NewOutput(&lines, term.NoColours), json: true}
		for _, a := range []*app{forPeople, forPrograms} {
			err := a.diagnosis(test.found)
			if got := errorText(err); got != test.err || exitCode(t.Context(), err) == exitProblems != (test.err != "") {
				t.Errorf("%q, wanted %q", got, test.err)
			}
			if err := a.out.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if text.String() != test.text {
			t.Errorf("got\n%swanted\n%s", text.String(), test.text)
		}
		if !strings.HasSuffix(lines.String(), test.summary+"\n") || strings.Count(lines.String(), "\n") != len(test.found)+1 {
			t.Errorf("%swanted the summary %s", lines.String(), test.summary)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestContextSurvey checks the findings for numbers of contexts.
func TestContextSurvey(t *testing.T) {
	for _, test := range []struct {
		survey contextSurvey
		kind   place.Kind
		want   place.Severity
		says   string
	}{
		{contextSurvey{contexts: 3}, kindContexts, place.OK, "3 contexts"},
		{contextSurvey{contexts: 3, failing: 1}, kindContexts, place.Warning, "found problems in 1 of 3 contexts"},
		{contextSurvey{contexts: 3, legacy: 2}, kindLegacy, place.Info, "2 legacy contexts"},
		{contextSurvey{contexts: 3, ahead: time.Date(2090, 1, 2, 3, 4, 5, 0, time.UTC)}, place.KindClock, place.Warning, "2090-01-02T03:04:05Z"},
	} {
		found := test.survey.findings()
		if x := found[len(found)-1]; x.Kind != test.kind || x.Severity != test.want || !strings.Contains(x.Detail, test.says) {
			t.Errorf("%+v: %+v", test.survey, x)
		}
	}
}

// TestLastCollected: the doctor mentions a store without recent collections.
func TestLastCollected(t *testing.T) {
	for _, test := range []struct {
		ago  time.Duration
		want place.Severity
		says string
	}{
		{0, place.OK, "last collected now"},
		{48 * time.Hour, place.OK, "last collected 2 days ago"},
		{70 * 24 * time.Hour, place.Info, "last collected 2 months ago"},
	} {
		dir := t.TempDir()
		s, err := ctxdir.Init(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		line := `{"ctxdir":"collected/1","record":"run","at":"` + time.Now().Add(-test.ago).UTC().Format(time.RFC3339) + `"}` + "\n"
		if err := os.WriteFile(filepath.Join(dir, "collected.jsonl"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if x := collectionFinding(s, 1); x.Severity != test.want || x.Detail != test.says {
			t.Errorf("%v ago: %+v", test.ago, x)
		}
	}
}
