// Package outline shows a conversation from a distance: its turns, and where its prompts, changes and failures are. A
// turn is a prompt of a person and everything up to the next prompt; prompts with no answer between them are one turn.
//
// [Of] makes a [Note] of each message, which the search index keeps. A [Branch] knows from the marks of the notes where
// turns begin, without the messages, and [Turns] sums up notes.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package outline

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

// Marks say what a message has.
type Marks int64

// The marks. Their numbers stand in the search index.
const (
	Prompt  Marks = 1 << iota // of a person
	Reply                     // of the model: a text, a thought or a call
	Call                      // of a tool
	Edit                      // a call that changes a file
	Failure                   // a result that reports an error
	Break                     // the conversation was compacted here
)

// MarkCount is the number of marks.
const MarkCount = 6

// Note is what an outline needs of a message.
type Note struct {
	Position int64
	ID       uuid.UUID
	At       time.Time

	Marks          Marks
	Calls          Calls
	Failed         int64  // results that report an error
	Added, Removed int64  // lines, by calls that change files: as they were called
	Text           string // the beginning of a prompt or a reply, in one line
}

// Calls are numbers of calls, by the kind of the tool.
type Calls [transcript.Tools]int64

const (
	// maxText bounds the beginning of a text, in bytes.
	maxText = 200
	// maxCompared bounds the arguments of a call whose changes are counted, in bytes.
	maxCompared = 256 << 10
)

// Of makes the note of a message with a role, from its body and the parts of that. Position, ID and time are left to the
// caller. A record that people do not read has no marks.
func Of(role string, body json.RawMessage, parts []transcript.Part) (n Note) {
	switch {
	case transcript.IsSummary(body) || isBoundary(body):
		n.Marks = Break
		return n
	case message.IsBookkeeping(role) || transcript.Bookkeeping(body):
		return n
	}
	voice := transcript.VoiceOf(role, parts)
	for i := range parts {
		n.add(voice, &parts[i])
	}
	if n.Marks&Prompt != 0 && hasResult(parts) {
		n.Marks, n.Text = n.Marks&^Prompt, ""
	}
	return n
}

// isBoundary reports whether a record is Claude Code's mark of a compaction.
func isBoundary(body json.RawMessage) bool {
	o := transcript.ObjectOf(body)
	return o.Text("type") == "system" && o.Text("subtype") == "compact_boundary"
}

// hasResult reports whether a message answers a call: a tool's answer has the role of a user in some formats.
func hasResult(parts []transcript.Part) bool {
	for i := range parts {
		if parts[i].Kind == transcript.Result {
			return true
		}
	}
	return false
}

func (n *Note) add(voice string, p *transcript.Part) {
	switch {
	case p.Kind == transcript.Call:
		n.Marks |= Reply | Call
		n.Calls[p.ToolKind()]++
		if p.Edits() {
			n.Marks |= Edit
			added, removed := p.Changes(maxCompared)
			n.Added, n.Removed = n.Added+added, n.Removed+removed
		}
		for i := range p.Results {
			n.add(voice, &p.Results[i])
		}
	case p.Kind == transcript.Result:
		if p.Failed {
			n.Marks |= Failure
			n.Failed++
		}
	case voice == transcript.User && p.Kind == transcript.Text:
		if said := message.Said(p.Text); said != "" {
			n.say(Prompt, said)
		}
	case voice == transcript.User && p.Kind == transcript.Attachment:
		n.say(Prompt, "")
	case voice == transcript.Assistant && p.Kind == transcript.Text && strings.TrimSpace(p.Text) != "":
		n.say(Reply, p.Text)
	case voice == transcript.Assistant && p.Kind == transcript.Thought:
		n.Marks |= Reply
	}
}

func (n *Note) say(mark Marks, text string) {
	n.Marks |= mark
	if n.Text == "" {
		n.Text = beginning(text)
	}
}

// beginning is the beginning of a text, in one line.
func beginning(text string) string {
	if len(text) > 4*maxText { // spaces become fewer
		text = text[:4*maxText]
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimSpace(text[:end]) + "…"
}
