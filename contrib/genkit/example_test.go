package genkit_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
)

// remember answers with the number of messages that it remembers, in place of a model.
func remember(ctx context.Context, _ exp.Responder, r *exp.SessionRunner[state]) (*exp.AgentResult, error) {
	err := r.Run(ctx, func(context.Context, *exp.AgentInput) (*exp.TurnResult, error) {
		r.AddMessages(ai.NewModelTextMessage(fmt.Sprintf("I remember %d messages", len(r.Messages()))))
		r.UpdateCustom(func(s state) state { s.Step++; return s })
		return &exp.TurnResult{FinishReason: exp.AgentFinishReasonStop}, nil
	})
	return r.Result(), err
}

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)

	store, err := ctxdir.Init(dir + "/store")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	agent := exp.NewCustomAgent("guide", remember, exp.WithSessionStore(genkit.NewStore[state](store)))
	first, err := agent.RunText(ctx, "Where should I walk?", exp.WithSessionID[state]("7"))
	if err != nil {
		log.Fatal(err)
	}
	second, _ := agent.RunText(ctx, "And if it rains?", exp.WithSessionID[state]("7")) // in another process, days later
	fmt.Println(second.Message.Text())

	// From the first snapshot on, the session takes another course: a fork, which copies nothing.
	_, _ = agent.RunText(ctx, "And in winter?", exp.WithSnapshotID[state](first.SnapshotID))
	_ = store.Use(ctx, genkit.ContextID("7"), func(c *ctxdir.Context) error {
		branches, err := c.Branches(ctx)
		for _, b := range branches {
			fmt.Println(b.Name, b.Messages, b.Shared)
		}
		return err
	})
	// Output:
	// I remember 3 messages
	// main 6 0
	// fork-2 6 3
}
