package consumer

import (
	"context"
	"fmt"
	"log"

	"github.com/cloudwego/eino/compose"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/eino"
)

func Example() {
	ctx, graph, input := context.Background(), compose.NewGraph[string, string](), ""
	//README 1
	fmt.Println(out, err)
}
