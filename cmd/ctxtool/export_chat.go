package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/ctxdir/ctxdir"
)

// jsonlExport writes each message as the framework had it, one a line.
type jsonlExport struct{ w io.Writer }

func (e *jsonlExport) begin(*ctxdir.Metadata, string) error { return nil }
func (e *jsonlExport) end() error                           { return nil }
func (e *jsonlExport) leftOut() int                         { return 0 }
func (e *jsonlExport) forPeople() bool                      { return false }

func (e *jsonlExport) message(ctx context.Context, m *said) error {
	if m.Unavailable != nil {
		return nil
	}
	if err := m.writeTo(ctx, e.w); err != nil {
		return err
	}
	_, err := io.WriteString(e.w, "\n")
	return err
}

// openaiExport writes an array of chat messages. A chat message is written as it is; of a session's
// record, what was said is put into that form.
type openaiExport struct {
	w    io.Writer
	some bool
	left int
}

func (e *openaiExport) leftOut() int    { return e.left }
func (e *openaiExport) forPeople() bool { return false }

func (e *openaiExport) begin(c *ctxdir.Metadata, branch string) error {
	if _, err := io.WriteString(e.w, "["); err != nil {
		return err
	}
	for _, b := range c.Branches {
		if b.Name == branch && kindOf(b.SystemPrompt) == '"' {
			return e.write(encode(chatMessage{Role: "system", Content: b.SystemPrompt}))
		}
	}
	return nil
}

func (e *openaiExport) write(object []byte) error {
	return e.element(func() error {
		_, err := e.w.Write(object)
		return err
	})
}

// element writes what separates an element from the one before, and the element.
func (e *openaiExport) element(write func() error) error {
	separator := "\n  "
	if e.some {
		separator = ",\n  "
	}
	e.some = true
	if _, err := io.WriteString(e.w, separator); err != nil {
		return err
	}
	return write()
}

func (e *openaiExport) end() error {
	_, err := io.WriteString(e.w, "\n]\n")
	return err
}

func (e *openaiExport) message(ctx context.Context, m *said) error {
	if m.Unavailable != nil {
		return nil
	}
	body := m.Body
	if body == nil {
		body = m.Stored // its payloads say nothing about its form
	}
	if o := objectOf(body); o.text("role") != "" && o["content"] != nil && !hasBlocks(o["content"]) {
		return e.element(func() error { return m.writeTo(ctx, e.w) })
	}
	m, err := m.held(ctx)
	if err != nil {
		return err
	}
	messages := chatMessages(m)
	if len(messages) == 0 {
		e.left++
	}
	for _, c := range messages {
		if err := e.write(encode(c)); err != nil {
			return err
		}
	}
	return nil
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

// hasBlocks reports whether a content is of blocks that chat messages do not have.
func hasBlocks(content json.RawMessage) bool {
	for _, b := range list(content) {
		switch objectOf(b).text("type") {
		case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document":
			return true
		}
	}
	return false
}

// chatMessages puts a record into the form of chat messages: tool calls beside the content, each tool result as
// a message of its own, before what else was said. There are none where nobody says anything.
func chatMessages(m *said) []chatMessage {
	o := spoken(m.Body)
	role := o.text("role")
	if author := objectOf(o["author"]); role == "" && author != nil {
		role = author.text("role")
	}
	if role == "" {
		return nil
	}
	var out []chatMessage
	said := chatMessage{Role: role}
	var content []json.RawMessage
	if kindOf(o["content"]) == '"' {
		said.Content = o["content"]
	}
	blocks := list(o["content"])
	if inner := objectOf(o["content"]); inner != nil {
		blocks = list(inner["parts"])
	}
	for _, b := range blocks {
		block := objectOf(b)
		switch block.text("type") {
		case "tool_use":
			call := chatCall{ID: block.text("id"), Type: "function"}
			call.Function.Name, call.Function.Arguments = block.text("name"), string(block["input"])
			said.ToolCalls = append(said.ToolCalls, call)
		case "tool_result":
			out = append(out, chatMessage{
				Role: "tool", Content: textOf(joinText(contentParts(block["content"]))), ToolCallID: block.text("tool_use_id"),
			})
		case "thinking", "redacted_thinking":
		case "image":
			content = append(content, imageBlock(block, b))
		default:
			content = append(content, textBlock(b))
		}
	}
	switch {
	case len(content) > 0:
		said.Content = encode(content)
	case said.Content == nil && len(said.ToolCalls) > 0:
		said.Content = json.RawMessage("null")
	case said.Content == nil && len(out) == 0 && len(blocks) > 0:
		said.Content = json.RawMessage(`""`) // it only thought
	case said.Content == nil:
		return out
	}
	return append(out, said)
}

// textBlock makes a block of a text where it is one; others stay as they are.
func textBlock(b json.RawMessage) json.RawMessage {
	text := b
	if o := objectOf(b); o != nil {
		if kindOf(o["text"]) != '"' {
			return b
		}
		text = o["text"]
	}
	return bytes.Join([][]byte{[]byte(`{"type":"text","text":`), text, []byte("}")}, nil)
}

// imageBlock makes an image_url of an image that stands in the message.
func imageBlock(o members, b json.RawMessage) json.RawMessage {
	source := objectOf(o["source"])
	url := source.text("url")
	if source.text("type") == "base64" {
		url = "data:" + source.text("media_type") + ";base64," + source.text("data")
	}
	if url == "" {
		return b
	}
	return bytes.Join([][]byte{[]byte(`{"type":"image_url","image_url":{"url":`), textOf(url), []byte("}}")}, nil)
}
