package moment_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/moment"
)

func Example() {
	dir, err := os.MkdirTemp("", "moments-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := ctxdir.Init(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	c, err := s.Create(ctx, ctxdir.Metadata{Title: "Imports"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	body := `{"role":"assistant","content":"I measured it. The root cause was a transaction for every row."}`
	if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: []byte(body)}); err != nil {
		log.Fatal(err)
	}

	if _, err := moment.Extract(ctx, c, moment.Options{}); err != nil {
		log.Fatal(err)
	}
	for m, err := range moment.InStore(ctx, s) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", m.Type, m.Content)
	}
	// Output:
	// solution: The root cause was a transaction for every row.
}
