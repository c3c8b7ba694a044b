package search

import (
	"encoding/json"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/transcript"
)

// voice says who speaks in a message: it weighs in the order of hits. The numbers stand in the index.
type voice int

const (
	speechVoice voice = iota // a person or the model says something to the other
	otherVoice               // the model thinks, or the form of the message is not known
	callVoice                // the model calls a tool
	resultVoice              // a tool answers
	promptVoice              // a program puts instructions or a summary into the conversation
)

// speech returns the voice of a message, and what is said in it: the strings of its texts.
func speech(role string, body json.RawMessage, parts []transcript.Part) (voice, map[string]bool) {
	is := otherVoice
	var said map[string]bool
	by := transcript.VoiceOf(role, parts)
	spoken := by == transcript.User || by == transcript.Assistant
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case transcript.Text:
			if !spoken || p.Text == "" {
				continue
			}
			if by == transcript.User && message.IsReminder(p.Text) || transcript.IsSummary(body) {
				is = max(is, promptVoice)
				continue
			}
			if said == nil {
				said = map[string]bool{}
			}
			said[p.Text] = true
		case transcript.Call:
			is = max(is, callVoice)
		case transcript.Result:
			is = max(is, resultVoice)
		default:
		}
	}
	if by == transcript.System {
		is = promptVoice
	}
	if said != nil {
		is = speechVoice
	}
	return is, said
}
