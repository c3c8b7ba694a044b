package apirules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// anthropicRequest is a conversation while it is checked.
type anthropicRequest struct {
	report
	used map[string]bool // ids of all calls
	open []string        // ids of the last message's calls
}

// Anthropic returns what is wrong with the messages and the system prompt of a request to the Messages API, one line for
// each fault. Another member of the request is a fault, too.
func Anthropic(request []byte) []string {
	r := &anthropicRequest{report: report{at: "request"}, used: map[string]bool{}}
	o := objectOf(request)
	if o == nil || kind(o["messages"]) != '[' {
		r.add("no object with messages")
		return r.found
	}
	r.only(o, "it", "messages", "system")
	// [M] system. error: "system: text content blocks must contain non-whitespace text".
	if o["system"] != nil {
		r.filled(o, "it", "system")
	}
	return r.messages(listOf(o["messages"]))
}

// AnthropicMessages does what [Anthropic] does for the list of messages of a request.
func AnthropicMessages(messages []json.RawMessage) []string {
	r := &anthropicRequest{report: report{at: "request"}, used: map[string]bool{}}
	return r.messages(messages)
}

func (r *anthropicRequest) messages(all []json.RawMessage) []string {
	last := ""
	for i, m := range all {
		r.at = fmt.Sprintf("messages.%d", i)
		o := objectOf(m)
		r.only(o, "it", "role", "content") // [MT] MessageParam. error: "messages.0.x: Extra inputs are not permitted".
		role, _ := o.text("role")
		// [M] The system prompt is a member of the request. error: "messages: Unexpected role "system"".
		if role != "user" && role != "assistant" {
			r.add("the role %q", role)
		}
		// error: "messages: first message must use the "user" role".
		if i == 0 && role != "user" {
			r.add("the first message has the role %q", role)
		}
		// [M] Consecutive messages of one role are one turn, so results may not come in the second one of two.
		r.content(role, role == last, o["content"])
		last = role
	}
	// error: "tool_use ids were found without tool_result blocks immediately after".
	if len(r.open) > 0 {
		r.add("calls without results at the end: %v", r.open)
	}
	return r.found
}

func (r *anthropicRequest) content(role string, continues bool, content json.RawMessage) {
	blocks := listOf(content)
	switch kind(content) {
	case '"':
		var text string
		if json.Unmarshal(content, &text) != nil || strings.TrimSpace(text) == "" {
			r.add("an empty text") // error: "messages: text content blocks must be non-empty"
		}
	case '[':
		if len(blocks) == 0 {
			r.add("no content") // error: "messages.0: all messages must have non-empty content"
		}
	default:
		r.add("content that is neither a text nor a list")
	}
	open, calls := r.open, []string(nil)
	if continues && role == "assistant" {
		calls = open
		open = nil
	}
	results, thoughts := true, true // the next block may be a result, or a thought
	for _, b := range blocks {
		o := objectOf(b)
		typ, _ := o.text("type")
		switch typ {
		case "tool_result":
			id, _ := o.text("tool_use_id")
			at := slices.Index(open, id)
			switch {
			case role != "user":
				r.add("a result in the role %s", role)
			case at < 0:
				// error: "unexpected tool_use_id found in tool_result blocks: … Each tool_result block must have a
				// corresponding tool_use block in the previous message."
				r.add("the result of %q, which the previous message does not call", id)
			case !results:
				// [TU] In the user message, results come first; any text comes after all of them.
				r.add("the result of %q behind other content", id)
			default:
				open = slices.Delete(slices.Clone(open), at, at+1)
			}
			r.result(o)
		case "tool_use":
			calls = append(calls, r.call(role, o))
		case "thinking", "redacted_thinking":
			r.thought(role, typ, thoughts, o)
		default:
			r.block(role, typ, o)
		}
		results = results && typ == "tool_result"
		thoughts = thoughts && (typ == "thinking" || typ == "redacted_thinking")
	}
	// [TU] Results follow their calls at once. error: "Did not find 1 tool_result block(s) at the beginning of this message.
	// Messages following tool_use blocks must begin with a matching number of tool_result blocks."
	if len(open) > 0 {
		r.add("it does not begin with the results of %v", open)
	}
	r.open = calls
}

func (r *anthropicRequest) call(role string, o object) string {
	r.only(o, "tool_use", "type", "id", "name", "input", "cache_control") // [MT] ToolUseBlockParam
	id, _ := o.text("id")
	name, _ := o.text("name")
	r.name("the id", id, 1<<10)
	r.name("the tool", name, 128) // [MT] Tool.name: at most 128 characters
	if role != "assistant" {
		r.add("a call in the role %s", role)
	}
	if objectOf(o["input"]) == nil {
		r.add("the input of %q is no object", id) // error: "tool_use.input: Input should be a valid dictionary"
	}
	if r.used[id] {
		r.add("the id %q was used before", id) // error: "messages.1.content.1: tool_use ids must be unique"
	}
	r.used[id] = true
	return id
}

// result checks what a result may hold: a text, or texts, images and documents.
func (r *anthropicRequest) result(o object) {
	r.only(o, "tool_result", "type", "tool_use_id", "content", "is_error", "cache_control") // [MT] ToolResultBlockParam
	switch kind(o["content"]) {
	case 0, '"':
	case '[':
		for _, b := range listOf(o["content"]) {
			inner := objectOf(b)
			typ, _ := inner.text("type")
			if typ != "text" && typ != "image" && typ != "document" {
				r.add("a result with a block %q", typ)
				continue
			}
			r.block("user", typ, inner)
		}
	default:
		r.add("a result whose content is neither a text nor a list")
	}
}

// thought checks a block of thinking: it has its signature, and comes first in a message of the assistant.
//
// [ET] When you send thinking blocks back, send them complete and unmodified. error: "Expected thinking or
// redacted_thinking, but found text. When thinking is enabled, a final assistant message must start with a thinking block."
func (r *anthropicRequest) thought(role, typ string, first bool, o object) {
	if role != "assistant" || !first {
		r.add("%s that is not at the beginning of a message of the assistant", typ)
	}
	if typ == "redacted_thinking" {
		r.only(o, typ, "type", "data") // [MT] RedactedThinkingBlockParam
		r.filled(o, typ, "data")
		return
	}
	r.only(o, typ, "type", "thinking", "signature") // [MT] ThinkingBlockParam
	r.filled(o, typ, "signature")                   // error: "thinking.signature: Field required"
	if _, ok := o.text("thinking"); !ok {
		r.add("thinking without its text")
	}
}

// block checks a block of content that is not part of a call. Images and documents are the user's.
func (r *anthropicRequest) block(role, typ string, o object) {
	source := objectOf(o["source"])
	form, _ := source.text("type")
	media, _ := source.text("media_type")
	data, _ := source.text("data")
	switch typ {
	case "text": // [MT] TextBlockParam. error: "messages: text content blocks must contain non-whitespace text"
		r.only(o, typ, "type", "text", "cache_control", "citations")
		r.filled(o, typ, "text")
		return
	case "image": // [MT] ImageBlockParam
		r.only(o, typ, "type", "source", "cache_control")
		switch form {
		case "base64":
			r.image(media, data)
		case "url":
			r.filled(source, "an image", "url")
		default:
			r.add("an image with a source %q", form)
		}
	case "document": // [MT] DocumentBlockParam
		r.only(o, typ, "type", "source", "title", "context", "citations", "cache_control")
		switch {
		case form == "base64" && media == "application/pdf":
			r.base64("a document", data)
		case form == "text" && media == "text/plain":
			r.filled(source, "a document", "data")
		default:
			r.add("a document with a source %q of type %q", form, media)
		}
	default:
		r.add("a block of type %q", typ) // error: "Input tag 'x' found using 'type' does not match any of the expected tags"
	}
	if role != "user" {
		r.add("%s in the role %s", typ, role)
	}
}
