package search_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// TestRank checks which places a ranking has, and in which order.
func TestRank(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{Labels: map[string]string{"user": "ada"}})
	check(t, err)
	defer c.Close()
	other, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	defer other.Close()
	add := func(c *ctxdir.Context, role, day, text string) {
		t.Helper()
		body := fmt.Sprintf(`{"role":"user","timestamp":"%sT12:00:00Z","content":%q}`, day, text)
		d := ctxdir.Draft{Role: role, Body: []byte(body)}
		d.CreatedAt, err = time.Parse(time.DateOnly, day)
		check(t, err)
		_, err = c.Active().Append(t.Context(), d)
		check(t, err)
	}
	add(c, "user", "2026-01-01", "the heron sleeps")
	add(c, "user", "2026-02-10", "the herons and the egrets")
	add(c, "user", "2026-02-11", "nothing of the kind")
	add(c, message.RoleMirror, "2026-02-12", "the heron in the mirror")
	_, err = c.Active().Fork(t.Context(), "side", 1)
	check(t, err)
	add(other, "user", "2026-02-10", "another heron")
	_, err = x.Update(t.Context(), search.UpdateOptions{})
	check(t, err)
	terms := search.NewTermCutter().Query("What about the heron and an Egret?")
	if !slices.Equal(terms, []string{"heron", "egret"}) {
		t.Errorf("terms %q", terms)
	}
	positions := func(q search.RankQuery) (all []int64) {
		t.Helper()
		r, err := x.Rank(t.Context(), q)
		check(t, err)
		for i, m := range r.Messages {
			all = append(all, m.Position)
			if i > 0 && m.Score > r.Messages[i-1].Score {
				t.Errorf("%+v: message %d has a larger score than the one before", q, i)
			}
		}
		return all
	}
	one := []uuid.UUID{c.ID()}
	for name, x := range map[string]struct {
		q    search.RankQuery
		want []int64
	}{
		"terms":  {search.RankQuery{Terms: terms, Contexts: one}, []int64{1, 0}},
		"all":    {search.RankQuery{Terms: []string{"egret", "another"}}, []int64{0, 1}},
		"labels": {search.RankQuery{Terms: terms, Labels: map[string]string{"user": "ada"}}, []int64{1, 0}},
		"branch": {search.RankQuery{Terms: terms, Contexts: one, Branch: "side"}, []int64{0}},
		"month":  {search.RankQuery{Dates: []search.Date{{Month: 2}}, Contexts: one}, []int64{1, 2}},
		"day":    {search.RankQuery{Dates: []search.Date{{Year: 2026, Month: 2, Day: 11}}, Contexts: one}, []int64{2, 1}},
		"none":   {search.RankQuery{Terms: []string{"robin"}, Contexts: one}, nil},
	} {
		if is := positions(x.q); !slices.Equal(is, x.want) && name != "all" || name == "all" && len(is) != 2 {
			t.Errorf("%s: positions %v, want %v", name, is, x.want)
		}
	}
	r, err := x.Rank(t.Context(), search.RankQuery{Terms: terms, Contexts: one})
	check(t, err)
	if r.Weights["egret"] <= r.Weights["heron"] || !slices.Equal(r.Messages[1].Branches, []string{"main", "side"}) {
		t.Errorf("weights %v, branches %v", r.Weights, r.Messages[1].Branches)
	}
}

// TestPathUses checks the files that messages name.
func TestPathUses(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	defer c.Close()
	for _, path := range []string{"a.go", "b.go", "a.go"} {
		_, err = c.Active().Append(t.Context(), ctxdir.Draft{Body: fmt.Appendf(nil, `{"role":"user","file_path":%q}`, path)})
		check(t, err)
	}
	check(t, x.UpdateContext(t.Context(), c.ID()))
	uses, err := x.Paths(t.Context(), c.ID(), "main", 2)
	check(t, err)
	if len(uses) != 2 || uses[0].Path != "a.go" || uses[0].Position != 2 || uses[1].Path != "b.go" {
		t.Errorf("uses %+v", uses)
	}
	for _, body := range []string{`{"role":"user","command":"cat c.go"}`, `{"role":"user","arguments":"{\"command\":\"cat c.go\"}"}`} {
		_, err = c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(body)})
		check(t, err)
	}
	check(t, x.UpdateContext(t.Context(), c.ID()))
	uses, err = x.Paths(t.Context(), c.ID(), "", 2)
	check(t, err)
	if len(uses) != 2 || uses[0].Path != "c.go" || uses[1].Path != "c.go" {
		t.Errorf("of a command: %+v", uses)
	}
	for f, err := range x.Files(t.Context(), search.FileQuery{}) {
		if check(t, err); f.Path == "c.go" {
			t.Errorf("no tool reads or writes %+v", f)
		}
	}
	for h, err := range x.Search(t.Context(), search.Query{Path: "c.go"}) {
		if check(t, err); true {
			t.Errorf("no tool reads or writes a file of %+v", h)
		}
	}
	if uses, err = x.Paths(t.Context(), c.ID(), "none", 9); err != nil || len(uses) != 0 {
		t.Errorf("of a branch that does not exist: %v, %v", uses, err)
	}
}
