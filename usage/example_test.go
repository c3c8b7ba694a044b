package usage_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/usage"
)

// A conversation of two calls. The second message of the assistant has the reply of the provider again.
func ExampleSteps() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "usage-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := ctxdir.Init(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, body := range []string{
		`{"role":"user","content":"Is it raining?"}`,
		`{"role":"assistant","content":"I look.","id":"chatcmpl-0123456789","model":"m","usage":{"prompt_tokens":10,"completion_tokens":3}}`,
		`{"role":"assistant","tool_calls":[],"id":"chatcmpl-0123456789","model":"m","usage":{"prompt_tokens":10,"completion_tokens":3}}`,
		`{"role":"tool","content":"sunny"}`,
		`{"role":"assistant","content":"No.","id":"chatcmpl-9876543210","model":"m","usage":{"prompt_tokens":20,"completion_tokens":2}}`,
	} {
		if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}
	var sum usage.Sum
	for step, err := range usage.Steps(ctx, c) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(step.Position, step.Model, step.Input, step.Output)
		sum.Add(&step)
	}
	fmt.Println(sum.Steps, "steps,", sum.Total, "tokens")
	// Output:
	// 1 m 10 3
	// 4 m 20 2
	// 2 steps, 35 tokens
}
