package consumer

import (
	"context"
	"fmt"
	"log"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/firebase/genkit/go/ai/exp"
)

type State struct{ N int }

func Example(turn exp.AgentFunc[State]) {
	ctx := context.Background()
	//README 1
	fmt.Println(out, err)
}
