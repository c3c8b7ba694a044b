package consumer

import (
	"context"
	"fmt"
	"log"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adkv2"
	"github.com/ctxdir/ctxdir/contrib/adkv2/adkmemory"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/cmd/launcher"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
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
