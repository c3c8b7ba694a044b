package apirules

import (
	"encoding/json"
	"fmt"
	"slices"
)

// chatMembers are the members of a message by its role.
//
// [CC] error: "Additional properties are not allowed ('id' was unexpected) - 'messages.0'".
var chatMembers = map[string][]string{
	"system":    {"role", "content", "name"},
	"developer": {"role", "content", "name"},
	"user":      {"role", "content", "name"},
	"assistant": {"role", "content", "name", "refusal", "audio", "tool_calls"},
	"tool":      {"role", "content", "tool_call_id"},
}

// chatParts are the types of parts of content by role.
//
// [CC] error: "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with role
// 'assistant' contains an image URL."
var chatParts = map[string][]string{
	"system":    {"text"},
	"developer": {"text"},
	"user":      {"text", "image_url", "input_audio", "file"},
	"assistant": {"text", "refusal"},
	"tool":      {"text"},
}

// maxCallID is the greatest length of the id of a call.
//
// error: "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40".
const maxCallID = 40

// maxFunction is the greatest length of the name of a function: [FC], FunctionDefinition.name.
const maxFunction = 64

// ChatCompletions returns what is wrong with the list of messages of a request to OpenAI's Chat Completions API, one line
// for each fault.
func ChatCompletions(messages []byte) []string {
	r := &report{at: "request"}
	if kind(messages) != '[' || !json.Valid(messages) {
		r.add("no list of messages")
		return r.found
	}
	var open []string // calls whose results must come now
	for i, m := range listOf(messages) {
		r.at = fmt.Sprintf("messages[%d]", i)
		o := objectOf(m)
		role, _ := o.text("role")
		if chatMembers[role] == nil { // [CC] the deprecated role "function" is none of them
			r.add("the role %q", role)
			continue
		}
		r.only(o, "it", chatMembers[role]...)
		if role == "tool" {
			id, _ := o.text("tool_call_id")
			at := slices.Index(open, id)
			if at < 0 {
				// error: "messages with role 'tool' must be a response to a … message with 'tool_calls'".
				r.add("the result of %q, which the messages before it do not call", id)
			} else {
				open = slices.Delete(open, at, at+1)
			}
		} else if len(open) > 0 {
			// [FC] error: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
			// 'tool_call_id'."
			r.add("it comes before the results of %v", open)
			open = nil
		}
		r.chatContent(role, o)
		if o["tool_calls"] != nil && role == "assistant" {
			open = r.chatCalls(o["tool_calls"])
		}
	}
	if len(open) > 0 {
		r.add("calls without results at the end: %v", open)
	}
	return r.found
}

func (r *report) chatContent(role string, o object) {
	switch content := o["content"]; kind(content) {
	case '"':
	case '[':
		parts := listOf(content)
		if len(parts) == 0 { // error: "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1"
			r.add("an empty list as content")
		}
		for _, p := range parts {
			r.chatPart(role, objectOf(p))
		}
	case 0, 'n':
		// [CC] content: required unless tool_calls is specified. error: "Invalid value for 'content': expected a string,
		// got null."
		if role != "assistant" || o["tool_calls"] == nil && o["refusal"] == nil && o["audio"] == nil {
			r.add("no content")
		}
	default:
		r.add("content that is neither a text nor a list")
	}
}

func (r *report) chatPart(role string, o object) {
	typ, _ := o.text("type")
	if !slices.Contains(chatParts[role], typ) {
		r.add("a part of type %q in the role %s", typ, role)
		return
	}
	switch typ {
	case "text", "refusal":
		if _, ok := o.text(typ); !ok {
			r.add("a part without %s", typ)
		}
	case "image_url":
		image := objectOf(o["image_url"])
		url, _ := image.text("url")
		r.dataURL(url)
	case "input_audio":
		audio := objectOf(o["input_audio"])
		data, _ := audio.text("data")
		r.base64("audio", data)
		if format, _ := audio.text("format"); format != "wav" && format != "mp3" {
			r.add("audio in the format %q", format)
		}
	case "file":
		file := objectOf(o["file"])
		if file["file_id"] == nil && file["file_data"] == nil {
			r.add("a file without file_id or file_data")
		}
	}
}

// chatCalls checks calls, and returns their ids.
func (r *report) chatCalls(calls json.RawMessage) (ids []string) {
	all := listOf(calls)
	if len(all) == 0 { // error: "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1"
		r.add("no list of calls")
	}
	for _, c := range all {
		o := objectOf(c)
		r.only(o, "a call", "id", "type", "function") // [CC] ChatCompletionMessageFunctionToolCall
		id, _ := o.text("id")
		if id == "" || len(id) > maxCallID || slices.Contains(ids, id) {
			r.add("the id %q of a call", id)
		}
		ids = append(ids, id)
		if typ, _ := o.text("type"); typ != "function" {
			r.add("a call of type %q", typ)
		}
		f := objectOf(o["function"])
		name, _ := f.text("name")
		r.name("the function", name, maxFunction)
		r.arguments(f)
	}
	return ids
}

// arguments reports arguments of a call that are not text with a JSON object.
//
// [CC] Function.arguments: the arguments, "in JSON format", in a string.
func (r *report) arguments(o object) {
	text, ok := o.text("arguments")
	if !ok || objectOf(json.RawMessage(text)) == nil {
		r.add("arguments that are no text with a JSON object")
	}
}
