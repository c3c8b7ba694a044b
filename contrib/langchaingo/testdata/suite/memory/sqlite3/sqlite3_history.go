package sqlite3

import (
	"context"

	"github.com/tmc/langchaingo/memory"
)

// NewSqliteChatMessageHistory returns the adapter.
func NewSqliteChatMessageHistory(_ ...any) *memory.ChatMessageHistory {
	return memory.NewChatMessageHistory()
}

// WithContext does nothing.
func WithContext(context.Context) any { return nil }

// WithOverwrite does nothing: SetMessages always replaces the messages.
func WithOverwrite() any { return nil }
