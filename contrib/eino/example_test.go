package eino_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/cloudwego/eino/compose"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/eino"
)

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)

	store, err := ctxdir.Init(dir + "/store")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	approved := false
	g := compose.NewGraph[string, string]()
	_ = g.AddLambdaNode("ask", compose.InvokableLambda(func(ctx context.Context, _ string) (string, error) {
		if !approved {
			return "", compose.Interrupt(ctx, "may I?")
		}
		return "deployed", nil
	}))
	_ = g.AddEdge(compose.START, "ask")
	_ = g.AddEdge("ask", compose.END)
	run, err := g.Compile(ctx, compose.WithCheckPointStore(eino.NewStore(store)))
	if err != nil {
		log.Fatal(err)
	}
	_, err = run.Invoke(ctx, "deploy", compose.WithCheckPointID("job-7"))
	_, interrupted := compose.ExtractInterruptInfo(err)
	fmt.Println("interrupted:", interrupted)

	approved = true // another process may do this, days later
	out, err := run.Invoke(ctx, "", compose.WithCheckPointID("job-7"))
	fmt.Println(out, err)
	// Output:
	// interrupted: true
	// deployed <nil>
}
