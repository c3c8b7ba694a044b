package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/chat"
)

// jsonlExport writes each message verbatim, one per line.
type jsonlExport struct{ w io.Writer }

func (e *jsonlExport) begin(*ctxdir.Metadata, string) error { return nil }
func (e *jsonlExport) end() error                           { return nil }

func (e *jsonlExport) message(ctx context.Context, m *loadedMessage) error {
	if m.Unavailable != nil {
		return nil
	}
	if err := m.writeTo(ctx, e.w); err != nil {
		return err
	}
	_, err := io.WriteString(e.w, "\n")
	return err
}

// openaiExport writes an array of chat messages. It writes a chat message verbatim, and converts the record of a
// session.
type openaiExport struct {
	w     io.Writer
	begun bool // an element was written
}

func (e *openaiExport) begin(c *ctxdir.Metadata, branch string) error {
	if _, err := io.WriteString(e.w, "["); err != nil {
		return err
	}
	for _, b := range c.Branches {
		if b.Name == branch && chat.KindOf(b.SystemPrompt) == '"' {
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

// element writes an element of the array, after a separator.
func (e *openaiExport) element(write func() error) error {
	separator := "\n  "
	if e.begun {
		separator = ",\n  "
	}
	e.begun = true
	if _, err := io.WriteString(e.w, separator); err != nil {
		return err
	}
	return write()
}

func (e *openaiExport) end() error {
	_, err := io.WriteString(e.w, "\n]\n")
	return err
}

func (e *openaiExport) message(ctx context.Context, m *loadedMessage) error {
	if m.Unavailable != nil {
		return nil
	}
	body := m.Body
	if body == nil {
		body = m.Stored // its form does not depend on payloads
	}
	if o := chat.ObjectOf(body); o.Text("role") != "" && o["content"] != nil && !hasBlocks(o["content"]) {
		return e.element(func() error { return m.writeTo(ctx, e.w) })
	}
	m, err := m.inMemory(ctx)
	if err != nil {
		return err
	}
	messages := chatMessages(m)
	if len(messages) == 0 {
		return errUnsupported
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

// hasBlocks reports whether a content has blocks that are not part of chat messages.
func hasBlocks(content json.RawMessage) bool {
	for _, b := range chat.List(content) {
		switch chat.ObjectOf(b).Text("type") {
		case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document":
			return true
		}
	}
	return false
}

// chatMessages converts a record to chat messages: tool calls beside the content, each tool result as a separate
// message before the rest. A record without a speaker has none.
func chatMessages(m *loadedMessage) []chatMessage {
	o := chat.Inner(m.Body)
	role := o.Text("role")
	if author := chat.ObjectOf(o["author"]); role == "" && author != nil {
		role = author.Text("role")
	}
	if role == "" {
		return nil
	}
	var out []chatMessage
	message := chatMessage{Role: role}
	var content []json.RawMessage
	if chat.KindOf(o["content"]) == '"' {
		message.Content = o["content"]
	}
	blocks := chat.List(o["content"])
	if inner := chat.ObjectOf(o["content"]); inner != nil {
		blocks = chat.List(inner["parts"])
	}
	for _, b := range blocks {
		block := chat.ObjectOf(b)
		switch block.Text("type") {
		case "tool_use":
			call := chatCall{ID: block.Text("id"), Type: "function"}
			call.Function.Name, call.Function.Arguments = block.Text("name"), string(block["input"])
			message.ToolCalls = append(message.ToolCalls, call)
		case "tool_result":
			out = append(out, chatMessage{
				Role: "tool", Content: textOf(chat.Join(chat.Content(block["content"]))), ToolCallID: block.Text("tool_use_id"),
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
		message.Content = encode(content)
	case message.Content == nil && len(message.ToolCalls) > 0:
		message.Content = json.RawMessage("null")
	case message.Content == nil && len(out) == 0 && len(blocks) > 0:
		message.Content = json.RawMessage(`""`) // it has only thoughts
	case message.Content == nil:
		return out
	}
	return append(out, message)
}

// textBlock turns a text into a block, and keeps other blocks.
func textBlock(b json.RawMessage) json.RawMessage {
	text := b
	if o := chat.ObjectOf(b); o != nil {
		if chat.KindOf(o["text"]) != '"' {
			return b
		}
		text = o["text"]
	}
	return bytes.Join([][]byte{[]byte(`{"type":"text","text":`), text, []byte("}")}, nil)
}

// imageBlock turns an inline image into an image_url.
func imageBlock(o chat.Object, b json.RawMessage) json.RawMessage {
	source := chat.ObjectOf(o["source"])
	url := source.Text("url")
	if source.Text("type") == "base64" {
		url = "data:" + source.Text("media_type") + ";base64," + source.Text("data")
	}
	if url == "" {
		return b
	}
	return bytes.Join([][]byte{[]byte(`{"type":"image_url","image_url":{"url":`), textOf(url), []byte("}}")}, nil)
}
