package consumer

import (
	"context"
	"fmt"
	"log"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/firebase/genkit/go/core/x/session"
)

type State struct{ N int }

func Example() {
	ctx, next := context.Background(), State{}
	//README 1
	fmt.Println(err)
}
