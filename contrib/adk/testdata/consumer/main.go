package main

import (
	"context"
	"fmt"
	"log"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adk"
	"github.com/ctxdir/ctxdir/contrib/adk/adkmemory"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/cmd/launcher"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
)

func quickStart(a agent.Agent) *launcher.Config {
	//README 2
	return config
}

func withArtifacts(a agent.Agent) *runner.Runner {
	//README 3
	fmt.Println(err)
	return r
}

func fork(ctx context.Context, store *ctxdir.Store, id string, b agent.Agent) *runner.Runner {
	//README 4
	fmt.Println(err)
	return other
}

func memory(store *ctxdir.Store) runner.Config {
	return runner.Config{
		//README 5
	}
}

func main() {
	fmt.Println(quickStart(nil), withArtifacts(nil), fork(context.Background(), nil, "", nil), memory(nil))
}
