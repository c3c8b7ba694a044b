package main

import (
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/chat"
	"github.com/ctxdir/ctxdir/message"
)

// conversation shows messages as people read them: tool calls with their results, and no bookkeeping of agent tools.
type conversation struct {
	all     bool // bookkeeping, too
	show    func(*chat.Turn[*loadedMessage]) error
	turns   chat.Turns[*loadedMessage]
	leftOut int // records of bookkeeping
}

// add adds the next message, which shows once its tool results have come.
func (v *conversation) add(m *loadedMessage) error {
	v.turns.Show = v.show
	if m.Unavailable != nil {
		return v.turns.Add(m, "", nil, 0)
	}
	if !v.all && (message.IsBookkeeping(m.Role) || chat.Bookkeeping(m.Body)) {
		v.leftOut++
		return nil
	}
	parts := chat.Parts(m.Body)
	voice := chat.VoiceOf(m.Role, parts)
	if !v.all && len(parts) == 0 && voice != chat.User { // a thought that the provider encrypted, for example
		v.leftOut++
		return nil
	}
	parts = slices.DeleteFunc(parts, func(p chat.Part) bool {
		return p.Kind == chat.Text && strings.TrimSpace(p.Text) == ""
	})
	return v.turns.Add(m, voice, parts, len(m.Body))
}

// one shows a message alone.
func (v *conversation) one(m *loadedMessage) error {
	if err := v.add(m); err != nil {
		return err
	}
	return v.turns.Flush()
}
