package ctxdir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
)

func Example() {
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	s, err := ctxdir.Init(dir)
	if err != nil {
		log.Fatal(err)
	}
	c, _ := s.Create(ctx, ctxdir.Metadata{Title: "A walk"})
	main := c.Active()
	main.Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"Which way?"}`)})
	at, _ := main.Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"assistant","content":"Left."}`)})
	alt, _ := main.Fork(ctx, "the other way", at.Position)
	alt.Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"assistant","content":"Right."}`)})
	for m := range alt.Messages(ctx, 0, ctxdir.End) {
		body, err := m.Body(ctx)
		fmt.Println(m.Position, string(body), err)
	}
	// Output:
	// 0 {"role":"user","content":"Which way?"} <nil>
	// 1 {"role":"assistant","content":"Right."} <nil>
}

// temporary makes a store for an example, and a conversation in it. done removes them.
func temporary(title string, opts ...ctxdir.Options) (s *ctxdir.Store, c *ctxdir.Context, done func()) {
	dir := must(os.MkdirTemp("", "store-"))
	s = must(ctxdir.Init(dir, opts...))
	c = must(s.Create(context.Background(), ctxdir.Metadata{Title: title}))
	return s, c, func() {
		c.Close()
		s.Close()
		os.RemoveAll(dir)
	}
}

// said is a message as many frameworks have it.
func said(role, text string) json.RawMessage {
	return must(json.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, text}))
}

// must ends an example that does not work.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// list prints what a branch shows.
func list(b *ctxdir.Branch) {
	for m, err := range b.Messages(context.Background(), 0, ctxdir.End) {
		check(err)
		fmt.Printf("%d %s\n", m.Position, m.Stored)
	}
}
