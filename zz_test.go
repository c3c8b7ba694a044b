package ctxdir_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/ctxdir/ctxdir"
)

func benchStore(b *testing.B) *ctxdir.Context {
	dir, _ := os.MkdirTemp("/var/tmp", "bench")
	b.Cleanup(func() { os.RemoveAll(dir) })
	s, err := ctxdir.Init(dir)
	if err != nil {
		b.Fatal(err)
	}
	c, err := s.Create(context.Background(), ctxdir.Metadata{Title: "t"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		c.Active().Append(context.Background(), ctxdir.Draft{Body: fmt.Appendf(nil, `{"role":"user","content":"hello %d"}`, i)})
	}
	b.Cleanup(func() { c.Close(); s.Close() })
	return c
}

func BenchmarkTitle(b *testing.B) {
	c := benchStore(b)
	for i := 0; b.Loop(); i++ {
		if err := c.Update(context.Background(), func(m *ctxdir.Metadata) error { m.Title = fmt.Sprint(i); return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSwitch(b *testing.B) {
	c := benchStore(b)
	for i := 0; b.Loop(); i++ {
		if err := c.Switch(context.Background(), "main"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	c := benchStore(b)
	for i := 0; b.Loop(); i++ {
		if _, err := c.Active().Append(context.Background(), ctxdir.Draft{Body: fmt.Appendf(nil, `{"role":"user","content":"hello %d"}`, i)}); err != nil {
			b.Fatal(err)
		}
	}
}
