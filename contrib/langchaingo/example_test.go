package langchaingo_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/langchaingo"
	"github.com/tmc/langchaingo/memory"
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
	history := langchaingo.NewHistory(store, "session-7")
	chat := memory.NewConversationBuffer(memory.WithChatHistory(history)) // pass it to chains.NewConversation

	if err := chat.SaveContext(ctx, map[string]any{"input": "hello"}, map[string]any{"output": "hi"}); err != nil {
		log.Fatal(err)
	}
	vars, _ := chat.LoadMemoryVariables(ctx, nil)
	fmt.Println(vars["history"])
	// Output:
	// Human: hello
	// AI: hi
}
