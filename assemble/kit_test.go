package assemble_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/search"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kit is a store with one context.
type kit struct {
	t *testing.T
	s *ctxdir.Store
	x *search.Index
	c *ctxdir.Context
}

func newKit(t *testing.T) *kit {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir(), ctxdir.Options{RelaxedDurability: true})
	check(t, err)
	t.Cleanup(func() { _ = s.Close() })
	x, err := search.Open(t.Context(), s)
	check(t, err)
	t.Cleanup(func() { _ = x.Close() })
	k := &kit{t: t, s: s, x: x}
	k.c = k.create("Test")
	return k
}

func (k *kit) create(title string) *ctxdir.Context {
	k.t.Helper()
	c, err := k.s.Create(k.t.Context(), ctxdir.Metadata{Title: title})
	check(k.t, err)
	k.t.Cleanup(func() { _ = c.Close() })
	return c
}

func said(role, text string) json.RawMessage {
	b, err := json.Marshal(map[string]string{"role": role, "content": text})
	if err != nil {
		panic(err)
	}
	return b
}

// add appends texts of user and assistant in turns.
func (k *kit) add(c *ctxdir.Context, texts ...string) {
	k.t.Helper()
	var drafts []ctxdir.Draft
	for i, text := range texts {
		drafts = append(drafts, ctxdir.Draft{Body: said([]string{"user", "assistant"}[i%2], text)})
	}
	_, err := c.Active().AppendBatch(k.t.Context(), drafts)
	check(k.t, err)
}

// chatter is texts about nothing.
func chatter(from, n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("m%05d %s", from+i, strings.Repeat("lorem ipsum dolor ", 20)))
	}
	return texts
}

func (k *kit) build(r assemble.Request) *assemble.Assembly {
	k.t.Helper()
	if r.Index = k.x; r.Context == [16]byte{} {
		r.Context = k.c.ID()
	}
	a, err := assemble.Build(k.t.Context(), k.s, r)
	check(k.t, err)
	return a
}

func at(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}
