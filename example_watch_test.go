package ctxdir_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
)

// follow passes the commits of any process to show, until show returns false. It returns the number to continue from.
func follow(ctx context.Context, c *ctxdir.Context, from uint64, show func(ctxdir.Event) (more bool)) (uint64, error) {
	w, err := c.Watch(ctx, from)
	if err != nil {
		return from, err
	}
	defer w.Close()
	for e := range w.Events(ctx) {
		if e.Kind == ctxdir.EventProblem {
			return from, e.Problem // the watcher could continue; this program looks at the context first
		}
		more := show(e)
		if e.Seq > 0 && !e.More {
			from = e.Seq
		}
		if !more {
			return from, nil
		}
	}
	return from, ctx.Err()
}

func ExampleContext_Watch() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	from := c.Summary().Sequence
	other := must(ctxdir.Open(s.Info().Path)) // as another process would
	defer other.Close()
	theirs := must(other.Open(ctx, c.ID()))
	defer theirs.Close()
	must(theirs.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(theirs.Active().Fork(ctx, "left", 1))

	show := func(e ctxdir.Event) bool {
		if e.Kind == ctxdir.EventMessage {
			fmt.Println(e.Branch, e.Message.Position, string(e.Message.Stored))
			return true
		}
		fmt.Println(e.Kind, e.Op, e.Branch)
		return e.Kind != ctxdir.EventBranch
	}
	from = must(follow(ctx, c, from, show))

	must(theirs.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))
	w := must(c.Watch(ctx, from))
	defer w.Close()
	for e := range w.Pending(ctx) {
		show(e)
	}
	// Output:
	// main 0 {"role":"user","content":"Which way?"}
	// branch created left
	// main 1 {"role":"assistant","content":"Left."}
}

// everything passes what happens in a store to show.
func everything(ctx context.Context, s *ctxdir.Store, show func(ctxdir.Event)) error {
	w, err := s.Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	for e := range w.Events(ctx) {
		if e.Kind == ctxdir.EventProblem {
			fmt.Printf("context %s: %v\n", e.Context, e.Problem)
			continue
		}
		show(e)
	}
	return ctx.Err()
}

func ExampleStore_Watch() {
	s, c, done := temporary("A walk")
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	watching := make(chan error)
	w := must(s.Watch(ctx))
	defer w.Close()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	for e := range w.Pending(ctx) {
		fmt.Println(e.Kind, e.Op, e.Branch, e.Message.Position)
	}
	go func() { watching <- everything(ctx, s, func(ctxdir.Event) {}) }()
	stop()
	fmt.Println(errors.Is(<-watching, context.Canceled))
	// Output:
	// message appended main 0
	// true
}
