package export

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// openaiForm writes an array of chat messages that the API of OpenAI takes: each tool call is followed by its result.
// Content that has the API's form already stays as it is.
type openaiForm struct {
	turnForm
	list elements
}

func newOpenAI(w io.Writer, all bool) form {
	e := &openaiForm{turnForm: turnForm{w: w}, list: elements{w: w}}
	e.All, e.Show = all, e.turn
	return e
}

func (e *openaiForm) begin(_ *ctxdir.Metadata, prompt string) error {
	if _, err := io.WriteString(e.w, "["); err != nil {
		return err
	}
	if prompt != "" {
		return e.list.element(chatMessage{Role: transcript.System, Content: textOf(prompt)})
	}
	return nil
}

func (e *openaiForm) end() error {
	if err := e.turnForm.end(); err != nil {
		return err
	}
	_, err := io.WriteString(e.w, "\n]\n")
	return err
}

// chatMessage has the members that every version of the API takes. It refuses others.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name,omitempty"` // of a person or an agent
	ToolCalls  []chatCall      `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (e *openaiForm) turn(t *transcript.Turn[*record.Loaded]) error {
	m := t.Message
	if m.Unavailable != nil {
		return nil
	}
	s := e.said(t)
	if !e.fits(&s) {
		return nil
	}
	message := chatMessage{Role: s.voice, Content: openaiContent(&s)}
	message.keep(transcript.ObjectOf(m.Body))
	for _, p := range s.calls {
		call := chatCall{ID: p.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = functionName(p.Name), string(argumentObject(p))
		message.ToolCalls = append(message.ToolCalls, call)
	}
	if err := e.list.element(message); err != nil {
		return err
	}
	for _, p := range s.calls {
		if err := e.list.element(chatMessage{Role: transcript.Tool, Content: textOf(resultText(p)), ToolCallID: p.ID}); err != nil {
			return err
		}
	}
	return nil
}

// keep takes over what a message of the API has beyond texts and images: the role of a developer, the name of the
// speaker, and parts such as audio and files.
func (m *chatMessage) keep(o transcript.Object) {
	role := o.Text("role")
	if transcript.Voice(role) != m.Role || chatParts[role] == nil {
		return
	}
	m.Role = role
	if name := o.Text("name"); name != "" && functionName(name) == name {
		m.Name = name
	}
	var parts []any
	for _, p := range transcript.List(o["content"]) {
		part, ok := chatPart(role, transcript.ObjectOf(p))
		if !ok {
			return
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		m.Content = record.Encode(parts)
	}
}

// chatParts are the parts of content that the API takes in the messages of a role.
var chatParts = map[string][]string{
	"system":             {"text"},
	"developer":          {"text"},
	transcript.User:      {"text", "image_url", "input_audio", "file"},
	transcript.Assistant: {"text", "refusal"},
}

// chatPart returns a part of content without members that the API does not know. ok is false if the API refuses the part.
func chatPart(role string, o transcript.Object) (part any, ok bool) {
	kind := o.Text("type")
	value := o[kind]
	switch {
	case !slices.Contains(chatParts[role], kind):
		return nil, false
	case kind == "text" || kind == "refusal":
		ok = strings.TrimSpace(o.Text(kind)) != ""
	case kind == "image_url":
		url := transcript.ObjectOf(value).Text("url")
		ok = strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") ||
			slices.ContainsFunc(imageTypes, func(media string) bool { return strings.HasPrefix(url, "data:"+media+";base64,") })
	case kind == "file":
		file := transcript.ObjectOf(value)
		ok = file["file_id"] != nil || file["file_data"] != nil
	default:
		ok = transcript.ObjectOf(value) != nil
	}
	return map[string]any{"type": kind, kind: value}, ok
}

// openaiContent is a text alone, or a list of texts and images, or null.
func openaiContent(s *said) json.RawMessage {
	text := strings.Join(s.texts, "\n\n")
	switch {
	case len(s.images) == 0 && text == "":
		return json.RawMessage("null")
	case len(s.images) == 0:
		return textOf(text)
	}
	var blocks []any
	if text != "" {
		blocks = append(blocks, textBlock{"text", text})
	}
	for _, img := range s.images {
		url := fmt.Sprintf("data:%s;base64,%s", img.mediaType, img.data)
		blocks = append(blocks, map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})
	}
	return record.Encode(blocks)
}
