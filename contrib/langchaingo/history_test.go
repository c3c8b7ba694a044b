package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/langchaingo"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"
)

const each = 20 // messages of each process

// child is what the processes of the tests do.
func child(store *ctxdir.Store, number int) error {
	for i := range each {
		h := langchaingo.NewHistory(store, "shared")
		if err := h.AddUserMessage(context.Background(), fmt.Sprintf("%d.%d", number, i)); err != nil {
			return err
		}
	}
	return nil
}

func TestMain(m *testing.M) { adaptertest.Main(m, child) }

func expect(t *testing.T, h *langchaingo.History, want ...llms.ChatMessage) {
	t.Helper()
	got, err := h.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append([]llms.ChatMessage{}, want...), got); diff != "" {
		t.Errorf("messages (-want +got):\n%.2000s", diff)
	}
}

// TestRestart: messages of all types, also a large one and one with tool calls, come back from another store on the
// folder.
func TestRestart(t *testing.T) {
	store := adaptertest.Open(t, "")
	h := langchaingo.NewHistory(store, "s/1")
	expect(t, h)
	call := llms.FunctionCall{Name: "look", Arguments: `{"at": "<sky>"}`}
	all := []llms.ChatMessage{
		llms.SystemChatMessage{Content: "be kind"}, llms.HumanChatMessage{Content: strings.Repeat("large", 1<<20)},
		llms.AIChatMessage{
			Content: "hm", ReasoningContent: "because", FunctionCall: &call,
			ToolCalls: []llms.ToolCall{{ID: "1", Type: "function", FunctionCall: &call}, {ID: "2"}},
		},
		llms.ToolChatMessage{ID: "1", Content: "blue"}, llms.GenericChatMessage{Role: "critic", Name: "bob", Content: "no"},
		llms.FunctionChatMessage{Name: "look", Content: "blue"}, llms.HumanChatMessage{},
	}
	for _, m := range all {
		if err := h.AddMessage(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, langchaingo.NewHistory(adaptertest.Open(t, store.Info().Path), "s/1"), all...)
	if err := h.AddMessage(t.Context(), own{}); !errors.Is(err, llms.ErrUnexpectedChatMessageType) {
		t.Errorf("a message of an unknown type: %v", err)
	}
}

type own struct{ llms.HumanChatMessage }

// TestProcesses: the messages that two processes add to a session at once are all there.
func TestProcesses(t *testing.T) {
	store := adaptertest.Open(t, "")
	adaptertest.Processes(t, store, 2)
	if got, err := langchaingo.NewHistory(store, "shared").Messages(t.Context()); err != nil || len(got) != 2*each {
		t.Errorf("%d messages, %v", len(got), err)
	}
}

// TestSetMessages: the messages are replaced in one commit, and a fork that was made before keeps the old ones.
func TestSetMessages(t *testing.T) {
	ctx := t.Context()
	store := adaptertest.Open(t, "")
	h := langchaingo.NewHistory(store, "s")
	if err := h.SetMessages(ctx, []llms.ChatMessage{llms.HumanChatMessage{Content: "a"}, llms.AIChatMessage{Content: "b"}}); err != nil {
		t.Fatal(err)
	}
	err := store.Use(ctx, ctxdir.ContextID("", "s"), func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(ctx, "old", 2)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	small, err := ctxdir.Open(store.Info().Path, ctxdir.Options{MaxMessage: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	next := []llms.ChatMessage{llms.HumanChatMessage{Content: "c"}, llms.AIChatMessage{Content: strings.Repeat("d", 2000)}}
	if err := langchaingo.NewHistory(small, "s").SetMessages(ctx, next); !errors.Is(err, ctxdir.ErrTooLarge) {
		t.Errorf("a message above the limit: %v", err)
	}
	expect(t, h, llms.HumanChatMessage{Content: "a"}, llms.AIChatMessage{Content: "b"}) // the first one was not set alone
	if err := h.SetMessages(ctx, next); err != nil {
		t.Fatal(err)
	}
	expect(t, h, next...)
	if err := h.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	expect(t, h)
	err = store.Use(ctx, ctxdir.ContextID("", "s"), func(c *ctxdir.Context) error { return c.Switch(ctx, "old") })
	if err != nil {
		t.Fatal(err)
	}
	expect(t, h, llms.HumanChatMessage{Content: "a"}, llms.AIChatMessage{Content: "b"})
}

// TestRemove: a session that another handle removed is empty, and begins anew.
func TestRemove(t *testing.T) {
	store := adaptertest.Open(t, "")
	h := langchaingo.NewHistory(store, "s")
	if err := h.AddUserMessage(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	other := adaptertest.Open(t, store.Info().Path)
	if _, err := other.Remove(t.Context(), ctxdir.ContextID("", "s")); err != nil {
		t.Fatal(err)
	}
	expect(t, h)
	if err := h.AddAIMessage(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	expect(t, langchaingo.NewHistory(other, "s"), llms.AIChatMessage{Content: "new"})
}
