package ctxdir_test

import (
	"context"
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
	for m := range alt.Messages(ctx) {
		body, err := m.Body(ctx)
		fmt.Println(m.Position, string(body), err)
	}
	// Output:
	// 0 {"role":"user","content":"Which way?"} <nil>
	// 1 {"role":"assistant","content":"Right."} <nil>
}
