package memory

import (
	"context"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/langchaingo"
	"github.com/tmc/langchaingo/llms"
)

// ChatMessageHistory is the adapter.
type ChatMessageHistory struct{ *langchaingo.History }

// ChatMessageHistoryOption changes a history.
type ChatMessageHistoryOption func(m *ChatMessageHistory)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// NewChatMessageHistory returns a history in a store in a new folder.
func NewChatMessageHistory(options ...ChatMessageHistoryOption) *ChatMessageHistory {
	dir, err := os.MkdirTemp("", "swap")
	must(err)
	store, err := ctxdir.Init(filepath.Join(dir, "store"))
	must(err)
	h := &ChatMessageHistory{langchaingo.NewHistory(store, "session")}
	for _, option := range options {
		option(h)
	}
	return h
}

// WithPreviousMessages adds messages.
func WithPreviousMessages(messages []llms.ChatMessage) ChatMessageHistoryOption {
	return func(m *ChatMessageHistory) { must(m.SetMessages(context.Background(), messages)) }
}
