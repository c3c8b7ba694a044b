package consumer

import (
	"fmt"
	"log"

	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/a2a"
)

func Example() {
	var executor a2asrv.AgentExecutor
	//README 1
	fmt.Println(handler)
}
