package langchaingo

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"
)

var _ schema.ChatMessageHistory = (*History)(nil)

// History is the chat history of a session. Several processes may add to it.
type History struct {
	store   *ctxdir.Store
	session string
}

// NewHistory returns the history of a session in store. The first message creates it. The caller closes store.
func NewHistory(store *ctxdir.Store, session string) *History { return &History{store, session} }

// AddMessage adds a message at the end.
func (h *History) AddMessage(ctx context.Context, message llms.ChatMessage) error {
	return h.change(ctx, false, message)
}

// AddUserMessage adds a text of the user at the end.
func (h *History) AddUserMessage(ctx context.Context, text string) error {
	return h.change(ctx, false, llms.HumanChatMessage{Content: text})
}

// AddAIMessage adds a text of the model at the end.
func (h *History) AddAIMessage(ctx context.Context, text string) error {
	return h.change(ctx, false, llms.AIChatMessage{Content: text})
}

// SetMessages replaces all messages in one commit. The trash lists the old ones for the grace period.
func (h *History) SetMessages(ctx context.Context, messages []llms.ChatMessage) error {
	return h.change(ctx, true, messages...)
}

// Clear removes all messages. The trash lists them for the grace period.
func (h *History) Clear(ctx context.Context) error { return h.change(ctx, true) }

// change adds messages in one commit. If clear is true, it first removes those that are there.
func (h *History) change(ctx context.Context, clear bool, messages ...llms.ChatMessage) error {
	drafts := make([]ctxdir.Draft, len(messages))
	for i, m := range messages {
		stored, err := encode(m)
		if err != nil {
			return err
		}
		body, err := json.Marshal(stored)
		if err != nil {
			return err
		}
		drafts[i] = ctxdir.Draft{Role: stored.Role, Body: body}
	}
	m := ctxdir.Metadata{ExternalID: h.session, Labels: map[string]string{"tool": "langchaingo"}}
	return h.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		_, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
			branch := tx.Metadata().ActiveBranch
			if clear {
				if err := tx.Rewind(branch, 0); err != nil {
					return err
				}
			}
			return tx.Append(branch, drafts...)
		})
		return err
	})
}

// Messages returns all messages. It leaves out erased and lost ones.
func (h *History) Messages(ctx context.Context) ([]llms.ChatMessage, error) {
	all := []llms.ChatMessage{}
	err := h.store.Use(ctx, ctxdir.ContextID("", h.session), func(c *ctxdir.Context) error {
		for m, err := range c.Active().Messages(ctx, 0, ctxdir.End) {
			if err != nil {
				return err
			}
			if errors.Is(m.Unavailable, ctxdir.ErrErased) || errors.Is(m.Unavailable, ctxdir.ErrDamaged) {
				continue
			}
			body, err := m.Body(ctx)
			if err != nil {
				return err
			}
			var stored message
			if err := json.Unmarshal(body, &stored); err != nil {
				return err
			}
			chat, err := stored.decode()
			if err != nil {
				return err
			}
			all = append(all, chat)
		}
		return nil
	})
	if errors.Is(err, ctxdir.ErrNotExist) {
		err = nil
	}
	return all, err
}
