package ctxdir_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/google/uuid"
)

// prompt returns what a model should see of a conversation before it answers: a request of the API of Anthropic, with at most 4,000 tokens.
func prompt(ctx context.Context, s *ctxdir.Store, id uuid.UUID, question string) (string, error) {
	a, err := assemble.Build(ctx, s, assemble.Request{Context: id, Query: question, MaxTokens: 4000, Format: assemble.Anthropic})
	if err != nil {
		return "", err
	}
	for _, it := range a.Items {
		fmt.Println(it.Kind, it.Branch, it.Position, it.Role)
	}
	return a.Text, nil
}

func ExampleStore_assemble() {
	dir := must(os.MkdirTemp("", "store"))
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s := must(ctxdir.Init(dir))
	defer s.Close()
	c := must(s.Create(ctx, ctxdir.Metadata{}))
	defer c.Close()
	for _, text := range []string{"The staging database is called heron.", "Noted."} {
		must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", text)}))
	}
	text := must(prompt(ctx, s, c.ID(), "what is the staging database called?"))
	fmt.Println(strings.Contains(text, "heron"))
	// Output:
	// newest main 0 user
	// newest main 1 user
	// true
}
