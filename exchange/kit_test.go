package exchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/exchange"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newStore(t *testing.T) *ctxdir.Store {
	t.Helper()
	s, err := ctxdir.Init(t.TempDir())
	check(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// newContext makes a context in a project of which the name must not leave.
func newContext(t *testing.T, s *ctxdir.Store) *ctxdir.Context {
	t.Helper()
	c, err := s.Create(t.Context(), ctxdir.Metadata{Title: "canarytitle", Labels: map[string]string{"project": "/home/ada/lantern"}})
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func add(t *testing.T, c *ctxdir.Context, role, text string) {
	t.Helper()
	d, err := ctxdir.NewDraft(map[string]any{"role": role, "content": text})
	check(t, err)
	_, err = c.Active().Append(t.Context(), d)
	check(t, err)
}

// talk adds exchanges about a heron. Each message has canaries.
func talk(t *testing.T, c *ctxdir.Context, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		add(t, c, "user", fmt.Sprintf("Why does the queue of the lantern service wait? "+
			"See internal/canarypath/heron%d.go and `canaryCode(%d)`.", i, i))
		d, err := ctxdir.NewDraft(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"id": fmt.Sprint("c", i), "type": "function",
			"function": map[string]string{"name": "canarytool", "arguments": `{"path":"canarypath/secret.go"}`},
		}}})
		check(t, err)
		_, err = c.Active().Append(t.Context(), d)
		check(t, err)
		add(t, c, "tool", "canaryresult: package main")
		add(t, c, "assistant", fmt.Sprintf("We decided to restart the worker number %d after a failure.\n```go\nfunc canaryFunc() {}\n```\n"+
			"The queue waits because the worker has no time limit.", i))
	}
}

// canaries are what must not leave, in lower case.
var canaries = []string{"canary", "heron", "lantern", "ada", "func ", "internal/", ".go", "package main"}

func hasCanary(text string) string {
	for _, c := range canaries {
		if strings.Contains(strings.ToLower(text), c) {
			return c
		}
	}
	return ""
}

// all is the text of a context.
func all(c exchange.ConversationContext) string {
	text := c.Summary
	for _, m := range c.Messages {
		text += "\n" + m.Content
	}
	return text
}
