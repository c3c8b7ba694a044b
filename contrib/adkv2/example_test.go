package adkv2_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adkv2"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

func Example() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := ctxdir.Init(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	sessions := adkv2.NewSessionService(store)
	made, err := sessions.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ada"})
	if err != nil {
		log.Fatal(err)
	}
	event := session.NewEvent(ctx, "invocation")
	event.Author, event.Content = "user", genai.NewContentFromText("Which way?", "user")
	event.Actions.StateDelta["user:language"] = "en"
	if err := sessions.AppendEvent(ctx, made.Session, event); err != nil {
		log.Fatal(err)
	}
	got, err := sessions.Get(ctx, &session.GetRequest{AppName: "app", UserID: "ada", SessionID: made.Session.ID()})
	if err != nil {
		log.Fatal(err)
	}
	language, err := got.Session.State().Get("user:language")
	fmt.Println(got.Session.Events().At(0).Content.Parts[0].Text, language, err)
	// Output: Which way? en <nil>
}
