package importer

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAll gives what is in a reader as "line: body", and what it reported.
func readAll(t testing.TB, r records) (out []string) {
	t.Helper()
	for {
		body, n, err := r.next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d: %s", n, body))
	}
}

func TestLines(t *testing.T) {
	nul := strings.Repeat("\x00", 300<<10)
	for name, test := range map[string]struct {
		in       string
		want     []string
		problems []string
	}{
		"one":               {`{"a":1}`, []string{`1: {"a":1}`}, nil},
		"CRLF, blank lines": {"{ \"a\" : 1 }\r\n\r\n \n{\"b\":2}\r\n", []string{`1: {"a":1}`, `4: {"b":2}`}, nil},
		"BOM":               {bom + "{}\n{}", []string{"1: {}", "2: {}"}, nil},
		"fused":             {"{\"a\":1}{\"b\":2} {\"c\":3}\n{}", []string{`1: {"a":1}`, `1: {"b":2}`, `1: {"c":3}`, "2: {}"}, nil},
		"noise behind":      {`{"a":1},{"b":2}` + "\n{}", []string{`1: {"a":1}`, "2: {}"}, []string{"1 invalid JSON at byte 7 of it"}},
		"values that are none": {"42 {\"a\":1} [1]\n\"x\"", []string{`1: {"a":1}`},
			[]string{"1 a JSON number, expected an object", "2 a JSON string, expected an object"}},
		"cut off":               {"{}\n{\"a\":\"b", []string{"1: {}"}, []string{"2 truncated JSON value"}},
		"NUL alone":             {"{}\n" + nul + "\n{}", []string{"1: {}", "3: {}"}, []string{"2 307200 NUL bytes"}},
		"NUL before and behind": {nul + "{}" + nul, []string{"1: {}"}, []string{"1 614400 NUL bytes"}},
		"NUL in between": {`{"a":1}` + nul + `{"b":` + "\x00" + `{"c":3}`, []string{`1: {"a":1}`, `1: {"c":3}`},
			[]string{"1 307201 NUL bytes; truncated JSON value"}},
		"invalid UTF-8":         {"{\"a\":\"\xff\"}{\"b\":2}\n", []string{`1: {"b":2}`}, []string{"1 invalid UTF-8"}},
		"half a surrogate pair": {`{"a":"\ud83d"}`, []string{`1: {"a":"\ud83d"}`}, nil},
		"at the limit":          {`{"a":"` + strings.Repeat("x", 992) + `"}`, []string{`1: {"a":"` + strings.Repeat("x", 992) + `"}`}, nil},
		"above the limit":       {`{"a":"` + strings.Repeat("x", 993) + "\"}\n{}", []string{"2: {}"}, []string{"1 record too large"}},
		"far above the limit": {strings.Repeat("x", 1<<20) + "\x00{}\n{}", []string{"1: {}", "2: {}"},
			[]string{"1 1 NUL bytes; record too large"}},
		"deep":    {strings.Repeat("[", 900) + "\n{}", []string{"2: {}"}, []string{"1 truncated JSON value"}},
		"nothing": {"", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var problems []Problem
			l := newLines(strings.NewReader(test.in), 1000, func(n int64, reason string) { problems = append(problems, Problem{"", n, reason}) })
			if d := cmp.Diff(test.want, readAll(t, l)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(test.problems, problemLines(problems)); d != "" {
				t.Error(d)
			}
			if _, _, err := l.next(); err != io.EOF {
				t.Errorf("behind the end: %v", err)
			}
		})
	}
}

func TestLargeLine(t *testing.T) {
	big := `{"a":"` + strings.Repeat("äöü\\n", 2<<20) + `"}`
	got := readAll(t, newLines(strings.NewReader("{}\n"+big+"{}\n{}"), DefaultMaxRecord, nil))
	if len(got) != 4 || got[1] != "2: "+big {
		t.Errorf("%d records", len(got))
	}
}

func TestTooLargeInArray(t *testing.T) {
	big := `{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}`
	path := fileOf(t, "x.json", "[\n{\"role\":\"user\",\"content\":\"a\"},\n"+big+"]")
	got := importFile(t, newFakeStore(), path, Options{MaxRecord: 10_000})
	if len(got.results) != 1 || got.results[0].Messages != 1 || len(got.problems) != 1 || got.problems[0].Line != 3 ||
		!strings.Contains(got.problems[0].Reason, ErrTooLarge.Error()) {
		t.Errorf("%+v", got)
	}
}

func TestLimitIsPerRecord(t *testing.T) {
	one := `{"role":"user","content":"` + strings.Repeat("x", 5_000) + `"}`
	path := fileOf(t, "x.json", "["+strings.Repeat(one+",\n", 200)+one+"]")
	got := importFile(t, newFakeStore(), path, Options{MaxRecord: 6_000})
	if len(got.results) != 1 || got.results[0].Messages != 201 || len(got.problems) > 0 {
		t.Errorf("%+v", got)
	}
}
