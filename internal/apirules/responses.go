package apirules

import (
	"encoding/json"
	"fmt"
	"slices"
)

// responseParts are the types of parts of a message by role.
//
// [RI] error: "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
var responseParts = map[string][]string{
	"user":      {"input_text", "input_image", "input_file"},
	"system":    {"input_text"},
	"developer": {"input_text"},
	"assistant": {"output_text", "refusal"},
}

// Responses returns what is wrong with the input items of a request to OpenAI's Responses API, one line for each fault. It
// knows messages, calls of functions with their outputs, and reasoning; any other item is a fault.
func Responses(items []json.RawMessage) []string {
	r := &report{at: "request"}
	called, answered := map[string]bool{}, map[string]bool{}
	for i, item := range items {
		r.at = fmt.Sprintf("input[%d]", i)
		o := objectOf(item)
		switch typ, _ := o.text("type"); typ {
		case "message":
			r.responseMessage(o)
		case "function_call": // [RI] ResponseFunctionToolCall
			r.only(o, typ, "type", "id", "call_id", "name", "arguments", "status")
			name, _ := o.text("name")
			r.name("the function", name, maxFunction)
			r.arguments(o)
			id := r.filled(o, typ, "call_id")
			if len(id) > 64 { // error: "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64"
				r.add("the id %q of a call is too long", id)
			}
			if called[id] {
				r.add("the id %q was used before", id)
			}
			called[id] = true
		case "function_call_output": // [RI] FunctionCallOutput
			r.only(o, typ, "type", "id", "call_id", "output", "status")
			id := r.filled(o, typ, "call_id")
			if _, ok := o.text("output"); !ok && len(listOf(o["output"])) == 0 {
				r.add("no output")
			}
			if !called[id] || answered[id] {
				// error: "No tool call found for function call output with call_id …".
				r.add("the output of %q, which no item before it calls", id)
			}
			answered[id] = true
		case "reasoning": // [RI] ResponseReasoningItem
			r.only(o, typ, "type", "id", "summary", "content", "encrypted_content", "status")
			if kind(o["summary"]) != '[' {
				r.add("reasoning without a summary")
			}
			for _, s := range listOf(o["summary"]) {
				if typ, _ := objectOf(s).text("type"); typ != "summary_text" {
					r.add("a summary with a part of type %q", typ)
				}
			}
		default:
			r.add("an item of type %q", typ)
		}
	}
	r.at = "request"
	for id := range called { // error: "No tool output found for function call …"
		if !answered[id] {
			r.add("no output of %q", id)
		}
	}
	slices.Sort(r.found)
	return r.found
}

func (r *report) responseMessage(o object) {
	r.only(o, "message", "type", "id", "role", "content", "status", "phase") // [RI] EasyInputMessage, ResponseOutputMessage
	role, _ := o.text("role")
	allowed := responseParts[role]
	if allowed == nil {
		r.add("the role %q", role)
		return
	}
	if kind(o["content"]) == '"' {
		r.filled(o, "message", "content")
		return
	}
	parts := listOf(o["content"])
	if len(parts) == 0 {
		r.add("no content")
	}
	for _, p := range parts {
		part := objectOf(p)
		typ, _ := part.text("type")
		switch {
		case !slices.Contains(allowed, typ):
			r.add("a part of type %q in the role %s", typ, role)
		case typ == "input_text" || typ == "output_text":
			r.filled(part, typ, "text")
		case typ == "input_image":
			url, _ := part.text("image_url")
			r.dataURL(url)
		}
	}
}
