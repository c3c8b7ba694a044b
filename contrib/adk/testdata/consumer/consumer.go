package consumer

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

func QuickStart(a agent.Agent) *launcher.Config {
	//README 2
	return config
}

func WithArtifacts(a agent.Agent) *runner.Runner {
	//README 3
	fmt.Println(err)
	return r
}

func Fork(ctx context.Context, store *ctxdir.Store, id string, b agent.Agent) *runner.Runner {
	//README 4
	fmt.Println(err)
	return other
}

func Memory(store *ctxdir.Store) runner.Config {
	return runner.Config{
		//README 5
	}
}
