package adkmemory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adkv2"
	"github.com/ctxdir/ctxdir/contrib/adkv2/adkmemory"
	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

// TestMemory checks that memory has the sessions of a user that were added, and no others.
func TestMemory(t *testing.T) {
	store, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := t.Context()
	sessions, memories := adkv2.NewSessionService(store), adkmemory.New(store)
	say := func(user, text string, add bool) session.Session {
		t.Helper()
		made, err := sessions.Create(ctx, &session.CreateRequest{AppName: "app", UserID: user})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"Hello.", text, "Noted."} {
			event := session.NewEvent(ctx, "invocation")
			event.Author, event.Content = "user", genai.NewContentFromText(text, genai.RoleUser)
			if i == 2 {
				event.Author, event.Content.Role = "agent", genai.RoleModel
			}
			if err := sessions.AppendEvent(ctx, made.Session, event); err != nil {
				t.Fatal(err)
			}
		}
		if add {
			err = errors.Join(memories.AddSessionToMemory(ctx, made.Session), memories.AddSessionToMemory(ctx, made.Session))
		}
		if err != nil {
			t.Fatal(err)
		}
		return made.Session
	}
	find := func(user, query string) (text string, entries []memory.Entry) {
		t.Helper()
		found, err := memories.SearchMemory(ctx, &memory.SearchRequest{AppName: "app", UserID: user, Query: query})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found.Memories {
			text += fmt.Sprintf("%s: %s\n", m.Author, m.Content.Parts[0].Text)
		}
		return text, found.Memories
	}
	ada := say("ada", "The staging database is called heron.", true)
	say("ada", "The production database is called egret.", false)
	say("bob", "The test database is called robin.", true)
	text, entries := find("ada", "what are the databases called?")
	if !strings.Contains(text, "user: The staging database is called heron.\n") || strings.Contains(text, "egret") ||
		strings.Contains(text, "robin") {
		t.Errorf("ada remembers %q", text)
	}
	for i, m := range entries {
		if m.ID == "" || m.Timestamp.IsZero() || i > 0 && m.Timestamp.Before(entries[i-1].Timestamp) {
			t.Errorf("memory %d is %+v", i, m)
		}
	}
	if text, _ := find("ada", "nothing of the kind"); text != "" {
		t.Errorf("a query without a match found %q", text)
	}
	if err := sessions.Delete(ctx, &session.DeleteRequest{AppName: "app", UserID: "ada", SessionID: ada.ID()}); err != nil {
		t.Fatal(err)
	}
	if text, _ := find("ada", "database"); text != "" {
		t.Errorf("a deleted session is remembered: %q", text)
	}
	if err := memories.AddSessionToMemory(ctx, ada); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("adding a deleted session: %v", err)
	}
}
