// Package transcript reads messages of agent frameworks and records of agent tools as a conversation: speakers, texts,
// thoughts, tool calls with their results, and attachments. It knows the shapes of Claude Code, Codex, opencode, Gemini
// CLI, pi, ChatGPT and the OpenAI, Anthropic and Google APIs, and shows everything else as JSON.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package transcript

import (
	"encoding/json"
	"strings"

	"github.com/ctxdir/ctxdir/internal/blob"
)

// Kind is the kind of a part.
type Kind int

// The kinds of parts.
const (
	Text       Kind = iota
	Thought         // of the model
	Call            // of a tool, with its arguments
	Result          // of a tool
	Attachment      // the description of an image or a file
	Other           // JSON of an unknown shape
)

// Part is a piece of a message, as people see it.
type Part struct {
	Kind    Kind
	Name    string // of the tool
	ID      string // of a call, also in its results; "" if the message does not say
	Text    string
	Failed  bool     // a result that reports an error
	Results []Part   // of a call, see [Turns]
	File    *FileRef // the content of an attachment
}

func (k Kind) String() string {
	return [...]string{"text", "thought", "call", "result", "attachment", "other"}[k]
}

// FileRef says where the content of an attachment is: in the message, or in a payload.
type FileRef struct {
	Path      string // the name in the message, "" if it has none
	MediaType string
	Base64    string    // the content, if the message has it
	Payload   *blob.Ref // otherwise
}

// Voices of speakers.
const (
	User      = "user"
	Assistant = "assistant"
	Tool      = "tool"
	System    = "system"
)

// Voice unifies the roles of frameworks: one of the voices, or "" for others.
func Voice(role string) string {
	switch role = strings.ToLower(role); role {
	case User, Assistant, Tool, System:
		return role
	case "human", "prompter":
		return User
	case "model", "ai", "gemini":
		return Assistant
	case "function", "toolresult", "bashexecution":
		return Tool
	case "developer":
		return System
	}
	return ""
}

// Inner is the chat message in a record: the record itself, or the message in the record of a session.
func Inner(body json.RawMessage) Object { return ObjectOf(body).inner() }

func (o Object) inner() Object {
	for _, k := range []string{"message", "payload"} {
		if inner := ObjectOf(o[k]); inner != nil && o["content"] == nil {
			return inner
		}
	}
	return o
}

// RoleOf is the role in a chat message, or that of its author.
func (o Object) RoleOf() string {
	if role := o.Text("role"); role != "" {
		return role
	}
	return ObjectOf(o["author"]).Text("role")
}

// Join is the text of parts, for a place that has room for one text.
func Join(parts []Part) string {
	var texts []string
	for _, p := range parts {
		switch p.Kind {
		case Attachment:
			texts = append(texts, "["+p.Text+"]")
		default:
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// arguments are the arguments of a call: JSON, or a text that holds JSON.
func arguments(v json.RawMessage) string {
	var s string
	if KindOf(v) == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// VoiceOf is the voice of a message with a role, or else of one with these parts.
func VoiceOf(role string, parts []Part) string {
	if voice := Voice(role); voice != "" || len(parts) == 0 {
		return voice
	}
	switch parts[0].Kind {
	case Thought, Call:
		return Assistant
	case Result:
		return Tool
	}
	return ""
}
