package search_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
)

// TestOrder checks which messages come first: both words before one, what is said before what tools print, and one of
// several copies.
func TestOrder(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	filler := func(text string, n int) string { return text + strings.Repeat(" something else", n) }
	for _, m := range []struct{ role, text string }{
		0:  {"tool", filler("heron egret heron egret", 10)},
		1:  {"user", filler("where does the heron sleep", 10)},
		2:  {"assistant", filler("the heron sleeps beside the egret", 10)},
		3:  {"user", filler("# AGENTS.md instructions: heron egret", 10)},
		4:  {"user", "a question about lapwings"},
		5:  {"tool", "a question about lapwings"},
		6:  {"user", "a question about lapwings"},
		7:  {"user", filler("nothing of the kind", 3)},
		8:  {"assistant", filler("curlew", 20)},
		9:  {"assistant", filler("the curlew, again", 20)},
		10: {"user", filler("dunlin in the reeds", 5)},
		11: {"user", filler("nothing", 8)},
		12: {"user", filler("no birds here", 9)},
	} {
		body, err := json.Marshal(map[string]string{"role": m.role, "content": m.text})
		check(t, err)
		_, err = c.Active().Append(t.Context(), ctxdir.Draft{Role: m.role, Body: body})
		check(t, err)
	}
	check(t, c.Close())
	_, err = x.Update(t.Context(), search.UpdateOptions{})
	check(t, err)
	for query, want := range map[string]struct {
		first   []int64 // in this order
		all     []int64
		partial []int64
	}{
		"heron egret":             {first: []int64{2}, all: []int64{0, 1, 2, 3}, partial: []int64{1}},
		"lapwings":                {all: []int64{4, 5}},
		"what about a heron":      {first: []int64{1}, all: []int64{0, 1, 2, 3}},
		"dunlin-curlew whimbrels": {all: []int64{8, 9, 10}, partial: []int64{8, 9, 10}},
		"heron -egret":            {all: []int64{1}},
		`"egret heron"`:           {all: []int64{0}},
		"egret/heron":             {all: []int64{0}},
		"reeds/dunlin":            {all: []int64{10}, partial: []int64{10}},
	} {
		var got, partial []int64
		for h, err := range x.Search(t.Context(), search.Query{Text: query}) {
			check(t, err)
			got = append(got, h.Position)
			if h.Partial {
				partial = append(partial, h.Position)
			}
		}
		if len(got) < len(want.first) || !slices.Equal(got[:len(want.first)], want.first) {
			t.Errorf("%s: hits at %d, want %d first", query, got, want.first)
		}
		slices.Sort(got)
		slices.Sort(partial)
		if !slices.Equal(got, want.all) || !slices.Equal(partial, want.partial) {
			t.Errorf("%s: hits at %d, %d in part; want %d, %d", query, got, partial, want.all, want.partial)
		}
	}
}
