package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/chat"
)

// openaiExport writes an array of chat messages that the API of OpenAI takes: each tool call is followed by its result. A
// message that has that form already stays verbatim.
type openaiExport struct {
	turnExport
	list jsonList
}

func newOpenAI(w io.Writer, read reading) exporter {
	e := &openaiExport{turnExport: turnExport{w: w}, list: jsonList{w: w}}
	e.all, e.show = read.all, e.turn
	return e
}

func (e *openaiExport) begin(c *ctxdir.Metadata, branch string) error {
	if _, err := io.WriteString(e.w, "["); err != nil {
		return err
	}
	for _, b := range c.Branches {
		if b.Name == branch && chat.KindOf(b.SystemPrompt) == '"' {
			return e.list.element(chatMessage{Role: "system", Content: b.SystemPrompt})
		}
	}
	return nil
}

func (e *openaiExport) end() error {
	if err := e.turnExport.end(); err != nil {
		return err
	}
	_, err := io.WriteString(e.w, "\n]\n")
	return err
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
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

func (e *openaiExport) turn(t *chat.Turn[*loadedMessage]) error {
	m := t.Message
	if m.Unavailable != nil {
		return nil
	}
	if isChatMessage(m.Body) {
		if err := e.list.element(m.Body); err != nil {
			return err
		}
		return e.results(t.Parts)
	}
	s := e.said(t)
	if s.nothing() || s.voice == "" {
		if len(s.thoughts) == 0 {
			e.unlisted++
		}
		return nil
	}
	message := chatMessage{Role: s.voice, Content: openaiContent(&s)}
	for _, p := range s.calls {
		call := chatCall{ID: p.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = functionName(p.Name), string(argumentObject(p))
		message.ToolCalls = append(message.ToolCalls, call)
	}
	if len(message.ToolCalls) > 0 {
		message.Role = chat.Assistant
	}
	if err := e.list.element(message); err != nil {
		return err
	}
	return e.results(t.Parts)
}

// results writes the results of calls.
func (e *openaiExport) results(parts []chat.Part) error {
	for i := range parts {
		if p := &parts[i]; p.Kind == chat.Call {
			if err := e.list.element(chatMessage{Role: chat.Tool, Content: textOf(resultText(p)), ToolCallID: p.ID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// isChatMessage reports whether a message is one that the API takes: a role in its spelling, and no content of others.
func isChatMessage(body json.RawMessage) bool {
	o := chat.ObjectOf(body)
	role := o.Text("role")
	if chat.Voice(role) != role && role != "developer" || o["content"] == nil && o["tool_calls"] == nil {
		return false
	}
	for _, b := range chat.List(o["content"]) {
		block := chat.ObjectOf(b)
		switch kind := block.Text("type"); kind {
		case "text", "image_url", "input_audio", "refusal":
		default:
			if kind != "file" || block["file"] == nil {
				return false
			}
		}
	}
	return chat.KindOf(o["content"]) != '{'
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
		blocks = append(blocks, textContent{"text", text})
	}
	for _, img := range s.images {
		url := fmt.Sprintf("data:%s;base64,%s", img.mediaType, img.data)
		blocks = append(blocks, map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})
	}
	return encode(blocks)
}

// functionName is a name that the APIs take: letters, digits, underscores and dashes, at most 64.
func functionName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "tool"
	}
	return name[:min(len(name), 64)]
}
