package trpcagent_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/trpcagent"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"
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
	service := trpcagent.NewSessionService(store) // pass it to runner.NewRunner with runner.WithSessionService
	defer service.Close()

	key := session.Key{AppName: "app", UserID: "ada", SessionID: "7"}
	sess, err := service.CreateSession(ctx, key, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := service.AppendEvent(ctx, sess, said(model.RoleUser, "hello")); err != nil {
		log.Fatal(err)
	}
	sess, _ = service.GetSession(ctx, key)
	fmt.Println(sess.Events[0].Choices[0].Message.Content)
	// Output: hello
}
