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
	// Two runners go on from here, each its own way.
	if err := sessions.Fork(ctx, made.Session, "left"); err != nil {
		log.Fatal(err)
	}
	answer := func(s *adkv2.SessionService, text string) string {
		at := &session.GetRequest{AppName: "app", UserID: "ada", SessionID: made.Session.ID()}
		got, err := s.Get(ctx, at)
		if err != nil {
			log.Fatal(err)
		}
		event := session.NewEvent(ctx, "invocation")
		event.Author, event.Content = "guide", genai.NewContentFromText(text, "model")
		if err := s.AppendEvent(ctx, got.Session, event); err != nil {
			log.Fatal(err)
		}
		if got, err = s.Get(ctx, at); err != nil {
			log.Fatal(err)
		}
		all, last := got.Session.Events(), got.Session.Events().Len()-1
		return fmt.Sprint(all.At(0).Content.Parts[0].Text, " ", all.At(last).Content.Parts[0].Text)
	}
	fmt.Println(answer(sessions, "To the right."))
	fmt.Println(answer(sessions.OnBranch("left"), "To the left."))
	// Output:
	// Which way? To the right.
	// Which way? To the left.
}
