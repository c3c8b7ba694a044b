// Package conversation reads messages as people read them: tool calls have their results, commands are as typed, and
// bookkeeping of agent tools is left out.
package conversation

import (
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// Reader shows messages as people read them: tool calls with their results, and no bookkeeping of agent tools.
type Reader struct {
	All     bool // bookkeeping, too
	Read    bool // by people: commands are as typed, and what they print is a result
	NoTools bool // without messages that have only results of tools, which Claude Code gives the role of the user
	Show    func(*transcript.Turn[*record.Loaded]) error
	LeftOut int // records of bookkeeping

	turns transcript.Turns[*record.Loaded]
}

// Add adds the next message, which shows once its tool results have come.
func (v *Reader) Add(m *record.Loaded) error {
	v.turns.Show = v.Show
	if m.Unavailable != nil {
		return v.turns.Add(m, "", nil, 0)
	}
	voice, parts, ok := v.partsOf(m)
	if !ok {
		v.LeftOut++
		return nil
	}
	says := func(p transcript.Part) bool { return p.Kind != transcript.Result || p.ID == "" }
	if v.NoTools && len(parts) > 0 && !slices.ContainsFunc(parts, says) {
		return nil
	}
	return v.turns.Add(m, voice, parts, len(m.Body))
}

// partsOf is the voice of a message, and its parts to show; ok is false for bookkeeping.
func (v *Reader) partsOf(m *record.Loaded) (voice string, parts []transcript.Part, ok bool) {
	if !v.All && (message.IsBookkeeping(m.Role) || transcript.Bookkeeping(m.Body)) {
		return "", nil, false
	}
	parts = transcript.Parts(m.Body)
	voice = transcript.VoiceOf(m.Role, parts)
	if !v.All && len(parts) == 0 && voice != transcript.User { // a thought that the provider encrypted, for example
		return "", nil, false
	}
	before := len(parts)
	if v.Read && !v.All && voice == transcript.User {
		parts = asTyped(parts)
	}
	if before > 0 && len(parts) == 0 {
		return "", nil, false
	}
	parts = slices.DeleteFunc(parts, func(p transcript.Part) bool {
		return p.Kind == transcript.Text && strings.TrimSpace(p.Text) == ""
	})
	return voice, parts, true
}

// asTyped is the parts of a message of a person without the marks of Claude Code: commands as typed, their output as
// results, and no note to the model on them.
func asTyped(parts []transcript.Part) []transcript.Part {
	var typed []transcript.Part
	for _, p := range parts {
		if p.Kind == transcript.Text {
			if command, ok := message.Typed(p.Text); ok {
				p.Text = command
			} else if output, ok := message.Printed(p.Text); ok {
				p.Kind, p.Text = transcript.Result, output
			} else if message.IsCaveat(p.Text) {
				continue
			}
			if p.Kind == transcript.Result && p.Text == "" {
				continue
			}
		}
		typed = append(typed, p)
	}
	return typed
}

// One shows a message alone.
func (v *Reader) One(m *record.Loaded) error {
	if err := v.Add(m); err != nil {
		return err
	}
	return v.Flush()
}

// Flush shows what waits for results.
func (v *Reader) Flush() error {
	v.turns.Show = v.Show
	return v.turns.Flush()
}

// Speaker is the role of a message, or else its type.
func Speaker(m *ctxdir.Message) string {
	switch {
	case m.Role != "":
		return m.Role
	case m.Type != "":
		return "[" + m.Type + "]"
	}
	return "message"
}
