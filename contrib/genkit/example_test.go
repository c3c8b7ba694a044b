package genkit_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/firebase/genkit/go/core/x/session"
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
	sessions := genkit.NewStore[map[string]string](store)

	sess, err := session.New(ctx, session.WithID[map[string]string]("7"), session.WithStore(sessions))
	if err != nil {
		log.Fatal(err)
	}
	if err := sess.UpdateState(ctx, map[string]string{"city": "Bergen"}); err != nil {
		log.Fatal(err)
	}
	again, _ := session.Load(ctx, sessions, "7") // in another process, days later
	fmt.Println(again.State()["city"])
	// Output: Bergen
}
