package search_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/search"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Flaky lock-test, v2": "flaky lock test v2",
		"snake_case_name_5":   "snake_case_name_5",
		"a/b.go":              "a b go",
		"我们修复了":               "我们 们修 修复 复了 了",
		"修lock锁":              "修 lock 锁",
		"Ünïcode ÉTÉ":         "ünïcode été",
		"x\xffy":              "x y",
		"":                    "",
		"ภาษา":                "ภา าษ ษา า",
	} {
		if got := strings.Join(search.Words(text), " "); got != want {
			t.Errorf("words of %q: %q, want %q", text, got, want)
		}
	}
}

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"parseTokenStream77": "77 pars parse parsetokenstream77 stream token",
		"HTTPServer":         "http httpserver server",
		"snake_cases":        "case cases snake snake_cases",
		"locks":              "lock locks",
		"zq0123xw":           "zq0123xw",
		"_private":           "_private privat private",
		"ID2Name":            "2 id id2name name",
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(search.AllTerms(text))), " "); got != want {
			t.Errorf("terms of %q: %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("aB", 40)
	if got := search.AllTerms(long); len(got) != 1 {
		t.Errorf("a word of %d bytes has %d terms", len(long), len(got))
	}
}

func TestTexts(t *testing.T) {
	for message, want := range map[string][]string{
		`{"role":"user","content":"hello"}`:                                             {"hello"},
		`{"id":"x","parentUuid":"y","type":"z","content":[{"type":"text","text":"a"}]}`: {"a"},
		`{"image":{"$blob":"00","size":5,"encoding":"base64"},"text":"b"}`:              {"b"},
		`{"deep":{"deeper":[{"$blob":"00"},"c"]}}`:                                      {"c"},
		`{"arguments":"{\"command\":\"one\\ntwo\",\"n\":7}"}`:                           {"command\none\ntwo\nn\n7\n"},
		`{"arguments":"{broken \\"}`:                                                    {`{broken \`},
		`{"data":"` + strings.Repeat("QUJD", 200) + `"}`:                                nil,
		`{"url":"data:image/png;base64,AAAA"}`:                                          nil,
		`{"a":"one","a":"two"}`:                                                         {"one", "two"},
	} {
		if got := search.Texts([]byte(message)); !reflect.DeepEqual(got, want) {
			t.Errorf("texts of %s: %q, want %q", message, got, want)
		}
	}
}

func TestSnippet(t *testing.T) {
	text := strings.Repeat("before\n", 100) + "the mark is here" + strings.Repeat(" after", 100)
	at := strings.Index(text, "mark")
	got, marks := search.CutSnippet(text, at, at+4)
	if len(marks) != 1 || got[marks[0][0]:marks[0][1]] != "mark" {
		t.Errorf("snippet %q, marks %v", got, marks)
	}
	if !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, " …") || strings.Contains(got, "\n") || len(got) > 250 {
		t.Errorf("snippet %q", got)
	}
}

func TestRequired(t *testing.T) {
	for expression, want := range map[string]string{
		`TODO\(\w+\)`: "TODO", `(?i)todo`: "", `a|b`: "", `(needle)+x`: "needle", `x{2,}lock test`: "lock test", `é`: "",
	} {
		if got := search.Required(expression); got != want {
			t.Errorf("required of %s: %q, want %q", expression, got, want)
		}
	}
}

func TestPlainLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"how did we fix the flaky lock test": "fix flaky lock test",
		"flaky lock":                         "flaky lock",
		"who was it":                         "who was it",
		"dist-tags of npm":                   "dist tags npm",
		"lock":                               "",
		"internal/engine/store.go":           "",
		`fix "the" flaky lock test`:          "",
		"one two three four five six -seven": "",
		"one OR two":                         "",
		"pars* flaky":                        "",
	} {
		if got := strings.Join(search.Question(text), " "); got != want {
			t.Errorf("%q looks for any of %q, want %q", text, got, want)
		}
	}
}
