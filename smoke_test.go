package ctxdir

import (
	"context"
	"fmt"
	"testing"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	s, err := Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Create(ctx, Metadata{Title: "x"})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Active()
	for i := range 50 {
		at, err := b.Append(ctx, Draft{Body: fmt.Appendf(nil, `{"role":"user","n":%d}`, i)})
		if err != nil || at.Position != int64(i) {
			t.Fatal(at, err)
		}
	}
	alt, err := b.Fork(ctx, "alt ✓", 20)
	if err != nil {
		t.Fatal(err)
	}
	alt.Append(ctx, Draft{Body: []byte(`{"x":1}`)})
	check := func(c *Context) {
		t.Helper()
		for name, n := range map[string]int{"main": 50, "alt ✓": 21} {
			b, err := c.Branch(name)
			if err != nil {
				t.Fatal(err)
			}
			ms, err := b.Load(ctx)
			if err != nil || len(ms) != n {
				t.Fatal(name, len(ms), err)
			}
			for i, m := range ms {
				if m.Position != int64(i) || m.Unavailable != nil || m.Edited {
					t.Fatal(name, i, m)
				}
			}
		}
	}
	check(c)
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	check(c)
	c2, err := s.Context(ctx, c.ID())
	if err != nil {
		t.Fatal(err)
	}
	check(c2)
	b.Append(ctx, Draft{Body: []byte(`{"x":1}`)})
	if err := c.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	b.Rewind(ctx, 50)
	for range 3 {
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	}
	check(c)
	if err := c2.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	check(c2)
	if err := c2.Rename(ctx, "alt ✓", "z/w"); err != nil {
		t.Fatal(err)
	}
	if err := c2.Rename(ctx, "z/w", "alt ✓"); err != nil {
		t.Fatal(err)
	}
	c.Refresh(ctx)
	check(c)
	fmt.Println(c.Summary(), c2.Summary())
}
