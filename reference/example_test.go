package reference_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/reference"
)

// A message refers to two lines of a file. Later the lines are elsewhere in it.
func Example() {
	ctx, root := context.Background(), newRoot()
	defer os.RemoveAll(root)
	b := newBranch(ctx, root)

	ref, err := reference.New(ctx, root, "store.go", 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	_, err = b.Append(ctx, ctxdir.Draft{
		Body:       json.RawMessage(`{"role":"user","content":"This loop leaks."}`),
		References: reference.Encode([]reference.Ref{ref}),
	})
	if err != nil {
		log.Fatal(err)
	}
	write(root, "package store\n\none\ntwo\nthree\n")

	last, err := b.Last(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	refs, err := reference.Of(ctx, last[0], root)
	if err != nil {
		log.Fatal(err)
	}
	resolutions, err := reference.Resolve(ctx, root, refs)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range resolutions {
		fmt.Printf("%s %s:%s (%s)\n%s", r.Status, r.File, r.Lines, r.Note, r.Text)
	}
	// Output:
	// shifted store.go:4-5 (lines 2-3 are lines 4-5 now)
	// two
	// three
}

func newRoot() string {
	root, err := os.MkdirTemp("", "reference")
	if err != nil {
		log.Fatal(err)
	}
	write(root, "one\ntwo\nthree\n")
	return root
}

func write(root, text string) {
	if err := os.WriteFile(filepath.Join(root, "store.go"), []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
}

func newBranch(ctx context.Context, root string) *ctxdir.Branch {
	s, err := ctxdir.Init(filepath.Join(root, ".ctxdir"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		log.Fatal(err)
	}
	return c.Active()
}
