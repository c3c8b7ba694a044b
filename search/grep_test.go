package search_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// stringsOf returns the strings of a message in order, without names and references, equal long ones once.
func stringsOf(t *testing.T, body []byte) (all []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	seen := map[string]bool{}
	var value func() bool
	value = func() bool {
		token, err := d.Token()
		check(t, err)
		switch v := token.(type) {
		case json.Delim:
			if v == '}' || v == ']' {
				return false
			}
			reference := false
			for first := true; ; first = false {
				if v == '{' {
					name, err := d.Token()
					if check(t, err); name == json.Delim('}') {
						return true
					}
					reference = reference || first && name == "$blob"
				}
				n := len(all)
				if !value() {
					return true
				}
				if reference {
					all = all[:n]
				}
			}
		case string:
			if len(v) < 32 || !seen[v] {
				seen[v] = true
				all = append(all, v)
			}
		}
		return true
	}
	value()
	return all
}

// grepScan returns what a search for an expression should yield.
func grepScan(t *testing.T, shows []*shown, re *regexp.Regexp, o search.GrepOptions) (all []string) {
	for _, m := range shows {
		if o.Contexts == nil && m.kind != "" || o.Contexts != nil && !slices.Contains(o.Contexts, m.context) ||
			o.Branch != "" && !slices.Contains(m.branches, o.Branch) || !o.Bookkeeping && message.IsBookkeeping(m.role) {
			continue
		}
		for _, text := range append(stringsOf(t, m.texting), attachedTexts(m.body)...) {
			for line := range strings.Lines(text) {
				line = strings.TrimRight(line, "\r\n")
				if marks := re.FindAllStringIndex(line, -1); marks != nil {
					all = append(all, fmt.Sprint(m.context, m.position, m.id, m.branches, line, marks))
				}
			}
		}
	}
	return all
}

// randomExpression returns an expression about words that messages have.
func randomExpression(r *rand.Rand, all []*shown) string {
	word := func() string {
		for range 50 {
			if w := asciiWord(r, all[r.IntN(len(all))]); w != "" {
				return w
			}
		}
		return "nothing"
	}
	w := word()
	forms := []string{
		w, "(?i)" + strings.ToUpper(w), w + `\w*`, w + "|" + word(), w + ".*" + word(), "^" + w, w + "$", "(" + w + " )+",
		`\b` + w[:1] + "?" + w[1:],
		`(?i:` + w + `) ` + word(), `[` + w + `]{5,}`, regexp.QuoteMeta(`<b>"` + w), regexp.QuoteMeta(`a\b ` + w),
		"é", "锁测", "修.复?", `\t`, `a/b`,
		w + `{2,}`, "(" + w + ")?x", "(" + w + "|x)" + word(), ".", regexp.QuoteMeta("internal/engine"), "attachedword|" + w,
		"line of content \\d{3}",
		"hiddenword",
	}
	return forms[r.IntN(len(forms))]
}

// TestGrepAgainstScan compares random expressions with a scan of a store that changes.
func TestGrepAgainstScan(t *testing.T) {
	t.Parallel()
	r, s := newRand(21), openStore(t, t.TempDir())
	l := &life{t: t, s: s, r: r}
	for i := range 3 {
		m := ctxdir.Metadata{Title: "context"}
		if i == 2 {
			m.Kind = "memory"
		}
		c, err := s.Create(t.Context(), m)
		check(t, err)
		l.all = append(l.all, c)
		appendSpeech(t, r, c.Active(), 15)
		for _, text := range []string{
			`{"role":"user","content":"\u0061 spelled \u006cock\u0020test, a\/b, a\\b lock <b>\"test\tlock\r\nlock"}`,
			`{"role":"user","content":{"lock":["lock test","lock test",1,null,{"a":"锁测 é"}]}}`,
		} {
			_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(text)})
			check(t, err)
		}
		for range 10 {
			_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: touched(t, r).body})
			check(t, err)
		}
	}
	steps := l.steps()
	for _, name := range []string{"", "fold", "fork", "rewind", "replace", "archive", "edit by hand", "a branch of a kind", "erase"} {
		for _, step := range steps {
			if step.name == name {
				step.do()
			}
		}
		all := everything(t, s)
		for range 2 * queries() {
			var o search.GrepOptions
			switch r.IntN(6) {
			case 0:
				o.Contexts = []uuid.UUID{all[r.IntN(len(all))].context}
			case 1:
				o.Branch = all[r.IntN(len(all))].branches[0]
			case 2:
				o.Bookkeeping = true
			}
			compareGrep(t, name, s, all, randomExpression(r, all), o)
		}
	}
}

func compareGrep(t *testing.T, when string, s *ctxdir.Store, all []*shown, expression string, o search.GrepOptions) {
	t.Helper()
	re, err := regexp.Compile(expression)
	check(t, err)
	want, got, turns := grepScan(t, all, re, o), []string{}, 0
	lines, last := map[uuid.UUID]bool{}, search.Match{}
	for _, m := range all {
		lines[m.line] = true
	}
	for m, err := range search.Grep(t.Context(), s, re, o) {
		if check(t, err); m.Context == last.Context && m.Position < last.Position {
			turns++ // another line begins
		}
		last = m
		got = append(got, fmt.Sprint(m.Context, m.Position, m.ID, m.Branches, m.Line, m.Marks))
	}
	if turns >= len(lines) {
		t.Errorf("%s: %s: positions are not in order", when, expression)
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Fatalf("%s: %s, %+v: %d matches, want %d\n got %.2000q\nwant %.2000q", when, expression, o, len(got), len(want), got, want)
	}
}
