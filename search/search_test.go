package search_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

func timeOf(ns int64) time.Time { return time.Unix(0, ns) }

func openStore(t *testing.T, dir string, opts ...ctxdir.Options) *ctxdir.Store {
	t.Helper()
	s, err := ctxdir.Init(dir, append(opts, ctxdir.Options{TextThreshold: 1024})...)
	check(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openIndex(t *testing.T, s *ctxdir.Store) *search.Index {
	t.Helper()
	x, err := search.Open(t.Context(), s)
	check(t, err)
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func queries() int {
	if testing.Short() {
		return 25
	}
	return 80
}

// life is a store that a test changes step by step.
type life struct {
	t    *testing.T
	s    *ctxdir.Store
	x    *search.Index
	r    *rand.Rand
	all  []*ctxdir.Context
	gone []uuid.UUID
}

func (l *life) any() *ctxdir.Context { return l.all[l.r.IntN(len(l.all))] }

func (l *life) path(parts ...string) string {
	return filepath.Join(append([]string{l.s.Info().Path}, parts...)...)
}

// steps change the store in every way that the index must notice.
func (l *life) steps() []step {
	ctx := l.t.Context()
	return []step{
		{"append", func() { appendSpeech(l.t, l.r, l.any().Active(), 5) }},
		{"fold", func() { check(l.t, l.any().Admin().Seal(ctx)) }},
		{"fork", func() {
			c := l.any()
			n, err := c.Active().Len(ctx)
			check(l.t, err)
			b, err := c.Active().Fork(ctx, "fork", l.r.Int64N(n+1))
			check(l.t, err)
			appendSpeech(l.t, l.r, b, 4)
		}},
		{"rewind", func() {
			b := l.any().Active()
			n, err := b.Len(ctx)
			check(l.t, err, b.Rewind(ctx, n/2))
			appendSpeech(l.t, l.r, b, 3)
		}},
		{"replace", func() {
			b := l.any().Active()
			m, err := b.Last(ctx, 2)
			check(l.t, err, b.Replace(ctx, m[0].ID, speech(l.r, 7), ctxdir.WriteOptions{Shared: true}))
		}},
		{"title, kind and label", func() {
			check(l.t, l.any().Update(ctx, func(m *ctxdir.Metadata) error {
				m.Title, m.Labels = "new", map[string]string{"project": "p"}
				return nil
			}))
		}},
		{"archive", func() { l.results(l.s.Archive(ctx, ctxdir.ArchiveOptions{All: true})) }},
		{"edit by hand", l.edit},
		{"a branch of a kind", l.moments},
		{"erase", l.erase},
		{"remove", func() {
			c := l.all[0]
			l.all = l.all[1:]
			check(l.t, c.Close())
			item, err := l.s.Remove(ctx, c.ID())
			check(l.t, err)
			l.gone = append(l.gone, item.ID)
		}},
		{"restore", func() {
			item, err := l.s.Restore(ctx, l.gone[0])
			check(l.t, err)
			c, err := l.s.Open(ctx, item.Context)
			check(l.t, err)
			l.all = append(l.all, c)
		}},
		{"collect", func() { l.collect(ctx) }},
		{"delete the index", func() { check(l.t, os.RemoveAll(l.path("derived"))) }},
		{"damage the index", l.damage},
	}
}

type step struct {
	name string
	do   func()
}

// moments makes a branch of the kind "moments", and writes to it.
func (l *life) moments() {
	c := l.all[len(l.all)-1]
	if _, err := c.Branch("moments"); err != nil {
		b, err := c.NewBranch(l.t.Context(), "moments")
		check(l.t, err, c.Update(l.t.Context(), func(m *ctxdir.Metadata) error {
			for i := range m.Branches {
				if m.Branches[i].Name == b.Name() {
					m.Branches[i].Extra = json.RawMessage(`{"kind":"moments"}`)
				}
			}
			return nil
		}))
	}
	b, err := c.Branch("moments")
	check(l.t, err)
	appendSpeech(l.t, l.r, b, 3)
}

func (l *life) results(_ []ctxdir.ArchiveResult, err error) { check(l.t, err) }

func (l *life) collect(ctx context.Context) {
	_, err := l.s.Collect(ctx, ctxdir.CollectOptions{All: true, NoGrace: true})
	check(l.t, err)
}

// edit changes a message file in place, and replaces another one.
func (l *life) edit() {
	c := l.any()
	check(l.t, c.Flush(l.t.Context()))
	appendSpeech(l.t, l.r, c.Active(), 2)
	check(l.t, c.Flush(l.t.Context()))
	files, err := filepath.Glob(l.path(c.ID().String(), "messages", "*", "*.json"))
	check(l.t, err)
	for i, path := range files[:2] {
		b, err := os.ReadFile(path)
		check(l.t, err)
		b = bytes.Replace(b, []byte(`"content":`), []byte(`"note":"editedbyhand twice","cost":0.5,"content":`), 1)
		if i == 1 {
			check(l.t, os.Remove(path))
		}
		check(l.t, os.WriteFile(path, b, 0o600))
	}
}

func (l *life) erase() {
	c := l.any()
	m, err := c.Active().Last(l.t.Context(), 3)
	check(l.t, err)
	_, err = l.s.Erase(l.t.Context(), c.ID(), []uuid.UUID{m[0].ID}, ctxdir.EraseOptions{Shared: true})
	check(l.t, err, c.Refresh(l.t.Context()))
}

// damage overwrites pages of the index while nothing has it open.
func (l *life) damage() {
	check(l.t, l.x.Close())
	path := l.path("derived", search.File)
	info, err := os.Stat(path)
	check(l.t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	check(l.t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("damage"), int(info.Size())/6-1), 200)
	check(l.t, err, f.Close())
	l.x = openIndex(l.t, l.s)
}

// TestAgainstScan changes a store in every way, and compares random searches with a scan of what branches show.
func TestAgainstScan(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1, 2, 3}
	if testing.Short() {
		seeds = seeds[:1]
	}
	for _, seed := range seeds {
		r := newRand(seed)
		s := openStore(t, t.TempDir())
		l := &life{t: t, s: s, x: openIndex(t, s), r: r}
		for i := range 4 {
			m := ctxdir.Metadata{Title: "context"}
			if i == 3 {
				m.Kind = "memory"
			}
			c, err := s.Create(t.Context(), m)
			check(t, err)
			l.all = append(l.all, c)
			appendSpeech(t, r, c.Active(), 20)
		}
		agree(t, "fresh", s, l.x, r, queries())
		steps := l.steps()
		for _, step := range steps {
			step.do()
			agree(t, step.name, s, l.x, r, queries())
			sameSteps(t, step.name, s, l.x)
			sameOutlines(t, step.name, s, l.x)
		}
		for range 2 * len(steps) {
			step := steps[r.IntN(len(steps)-5)] // those that can be repeated
			if step.name == "fork" {
				continue
			}
			step.do()
			agree(t, "again, "+step.name, s, l.x, r, queries()/5)
			sameSteps(t, "again, "+step.name, s, l.x)
			sameOutlines(t, "again, "+step.name, s, l.x)
		}
		for _, c := range l.all {
			check(t, c.Close())
		}
	}
}

// found returns the number of hits.
func found(t *testing.T, x *search.Index, q search.Query) (n int) {
	t.Helper()
	updated, err := x.Update(t.Context(), search.UpdateOptions{})
	check(t, err, updated.Problem)
	for _, err := range x.Search(t.Context(), q) {
		check(t, err)
		n++
	}
	return n
}

func said(t *testing.T, text string) ctxdir.Draft {
	t.Helper()
	b, err := json.Marshal(map[string]string{"role": "user", "content": text})
	check(t, err)
	return ctxdir.Draft{Body: b}
}

// TestPages reads a search page by page.
func TestPages(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	for i := range 23 {
		_, err := c.Active().Append(t.Context(), said(t, fmt.Sprint("page ", strings.Repeat("page word ", i%3), i)))
		check(t, err)
	}
	check(t, c.Close())
	if n := found(t, x, search.Query{Text: "page"}); n != 23 {
		t.Fatalf("%d hits", n)
	}
	seen, cursor, score := map[int64]bool{}, "", 0.0
	for page := 0; ; page++ {
		n := 0
		for h, err := range x.Search(t.Context(), search.Query{Text: "page", Limit: 5, Cursor: cursor}) {
			check(t, err)
			if seen[h.Position] || len(seen) > 0 && h.Score > score {
				t.Errorf("position %d again, or out of order", h.Position)
			}
			seen[h.Position], cursor, score = true, h.Cursor, h.Score
			n++
		}
		if n == 0 {
			break
		}
	}
	if len(seen) != 23 {
		t.Errorf("%d hits on all pages", len(seen))
	}
}

// TestLimit finds the best messages behind many that are left out, and the same with a limit as without one.
func TestLimit(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	var drafts []ctxdir.Draft
	for i := range 400 {
		body := `{"role":"mirror","content":"word word word"}`
		if i%40 == 0 {
			body = `{"role":"user","content":"word and others` + strings.Repeat(" others", i/40) + `"}`
		}
		drafts = append(drafts, ctxdir.Draft{Body: json.RawMessage(body)})
	}
	_, err = c.Active().AppendBatch(t.Context(), drafts)
	check(t, err, c.Close())
	if n := found(t, x, search.Query{Text: "word"}); n != 10 {
		t.Fatalf("%d hits", n)
	}
	var got []int64
	for h, err := range x.Search(t.Context(), search.Query{Text: "word", Limit: 3}) {
		check(t, err)
		got = append(got, h.Position)
	}
	if !slices.Equal(got, []int64{0, 40, 80}) {
		t.Errorf("hits at %v", got)
	}
	if n := found(t, x, search.Query{Text: "word", Bookkeeping: true, Limit: 250}); n != 250 {
		t.Errorf("%d hits of 250", n)
	}
}

// TestReadOnly searches a store that is open for reading: with the index in memory, and with that of the file.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	_, err = c.Active().Append(t.Context(), said(t, "first"))
	check(t, err)
	look := func(text string) int {
		r, err := ctxdir.Open(dir, ctxdir.Options{ReadOnly: true})
		check(t, err)
		defer r.Close()
		x, err := search.Open(t.Context(), r)
		check(t, err)
		defer x.Close()
		return found(t, x, search.Query{Text: text})
	}
	if n := look("first"); n != 1 {
		t.Errorf("%d hits without a file", n)
	}
	if _, err := os.Stat(filepath.Join(dir, "derived")); !os.IsNotExist(err) {
		t.Errorf("reading made a folder: %v", err)
	}
	x := openIndex(t, s)
	found(t, x, search.Query{Text: "first"})
	check(t, x.Close())
	_, err = c.Active().Append(t.Context(), said(t, "second"))
	check(t, err, c.Close())
	if n := look("first OR second"); n != 2 {
		t.Errorf("%d hits with a file", n)
	}
}

// TestNoFolder searches a store in which the index cannot have a file.
func TestNoFolder(t *testing.T) {
	s := openStore(t, t.TempDir())
	check(t, os.WriteFile(filepath.Join(s.Info().Path, "derived"), nil, 0o600))
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	_, err = c.Active().Append(t.Context(), said(t, "first"))
	check(t, err, c.Close())
	if n := found(t, openIndex(t, s), search.Query{Text: "first"}); n != 1 {
		t.Errorf("%d hits", n)
	}
}

// TestPathQuery finds messages by the files that they touch.
func TestPathQuery(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	for _, path := range []string{"/home/ada/p/internal/a.go", "b.go", "c.md"} {
		b, err := json.Marshal(map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "input": map[string]any{
			"file_path": path, "text": "edit"}}}})
		check(t, err)
		_, err = c.Active().Append(t.Context(), ctxdir.Draft{Body: b})
		check(t, err)
	}
	check(t, c.Close())
	for glob, want := range map[string]int{"*.go": 2, "internal/*": 1, "b.go": 1, "*": 3, "x*": 0} {
		if n := found(t, x, search.Query{Path: glob}); n != want {
			t.Errorf("%s: %d hits, want %d", glob, n, want)
		}
	}
	if n := found(t, x, search.Query{Path: "*.go", Text: "edit -internal"}); n != 1 {
		t.Errorf("with words: %d hits", n)
	}
}

// TestBadQueries fails for queries without a word to look for.
func TestBadQueries(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	for _, text := range []string{"", "-only", `"open`, "a OR", "OR a", "a OR -b", "...", `""`} {
		var failed error
		for _, err := range x.Search(t.Context(), search.Query{Text: text}) {
			failed = err
		}
		if failed == nil {
			t.Errorf("%q found something to look for", text)
		}
	}
}
