package ctxdir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// open opens the store of a program, and makes it on the first run.
func open(dir string) (*ctxdir.Store, error) {
	return ctxdir.Init(dir, ctxdir.Options{LockTimeout: 5 * time.Second})
}

func ExampleInit() {
	dir := must(os.MkdirTemp("", "store-"))
	defer os.RemoveAll(dir)
	s := must(open(filepath.Join(dir, "conversations")))
	defer s.Close()
	_, err := ctxdir.Open(s.Info().Path)
	fmt.Println(err)
	// Output: <nil>
}

// resume returns the newest messages, as the framework stored them.
func resume(ctx context.Context, s *ctxdir.Store, id uuid.UUID) ([]json.RawMessage, error) {
	c, err := s.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	last, err := c.Active().Last(ctx, 50)
	if err != nil {
		return nil, err
	}
	return ctxdir.ResolveAll(ctx, last)
}

func ExampleStore_Open() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	for i := range 60 {
		must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", fmt.Sprintf("Step %d.", i))}))
	}
	bodies := must(resume(ctx, s, c.ID()))
	fmt.Println(len(bodies))
	fmt.Println(string(bodies[0]))
	// Output:
	// 50
	// {"role":"user","content":"Step 10."}
}

func ExampleStore_List() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))

	for sum, err := range s.List(ctx, ctxdir.ListOptions{}) {
		check(err)
		fmt.Println(sum.Title, sum.Messages, sum.ActiveBranch, sum.Problem)
	}
	// Output: A walk 1 main <nil>
}

// recall reads a whole branch in bounded memory. It skips a message that is unavailable.
func recall(ctx context.Context, b *ctxdir.Branch, each func(position int64, body json.RawMessage)) error {
	for m, err := range b.Messages(ctx, 0, ctxdir.End) {
		if err != nil {
			return err
		}
		body, err := m.Body(ctx)
		if err != nil {
			log.Printf("message %d: %v", m.Position, err)
			continue
		}
		each(m.Position, body)
	}
	return nil
}

func ExampleBranch_Messages() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))

	check(recall(ctx, c.Active(), func(position int64, body json.RawMessage) { fmt.Println(position, string(body)) }))
	// Output:
	// 0 {"role":"user","content":"Which way?"}
	// 1 {"role":"assistant","content":"Left."}
}

func ExampleBranch_Range() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	for i := range 10 {
		must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", fmt.Sprintf("Step %d.", i))}))
	}
	for _, m := range must(c.Active().Range(ctx, 3, 5)) {
		fmt.Println(m.Position, m.Role, string(m.Stored))
	}
	// Output:
	// 3 user {"role":"user","content":"Step 3."}
	// 4 user {"role":"user","content":"Step 4."}
}
