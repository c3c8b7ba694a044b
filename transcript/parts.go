package transcript

import (
	"encoding/json"
	"strings"
)

// Parts splits a message of any framework into parts. An unknown message is one part of JSON.
func Parts(body json.RawMessage) []Part {
	o := ObjectOf(body)
	if parts, ok := recordParts(o); ok {
		return parts
	}
	o = o.inner()
	if parts, ok := item(o); ok {
		return parts
	}
	var parts []Part
	if t := o.Text("reasoning_content"); t != "" {
		parts = append(parts, Part{Kind: Thought, Text: t})
	}
	parts = append(parts, Content(o["content"])...)
	if t := o.Text("refusal"); t != "" {
		parts = append(parts, Part{Text: t})
	}
	if Voice(o.RoleOf()) == Tool {
		id := o.Text("tool_call_id", "toolCallId")
		if id == "" && o.Text("role") == "function" {
			id = functionID(o.Text("name"))
		}
		parts = []Part{{Kind: Result, ID: id, Name: o.Text("toolName"), Failed: o.isTrue("isError"), Text: Join(parts)}}
	}
	for _, c := range List(o["tool_calls"]) {
		call := ObjectOf(c)
		f := call
		for _, kind := range []string{"function", "custom"} {
			if inner := ObjectOf(call[kind]); inner != nil {
				f = inner
			}
		}
		parts = append(parts, Part{Kind: Call, Name: f.Text("name"), ID: call.Text("id"), Text: arguments(f.first("arguments", "input"))})
	}
	if f := ObjectOf(o["function_call"]); f != nil { // of the first version of the chat API
		name := f.Text("name")
		parts = append(parts, Part{Kind: Call, Name: name, ID: functionID(name), Text: arguments(f["arguments"])})
	}
	if len(parts) == 0 {
		parts = Content(o["parts"])
	}
	if t := o.Text("text", "summary"); t != "" && len(parts) == 0 {
		parts = []Part{{Text: t}}
	}
	if len(parts) == 0 && o["content"] == nil {
		parts = []Part{{Kind: Other, Text: string(body)}}
	}
	return parts
}

// functionID joins the call of a function that has no id with its result, by the name.
func functionID(name string) string { return "function " + name }

// item splits the items of a session that are not chat messages: those of the Responses API of OpenAI, and pi's commands.
func item(o Object) (parts []Part, ok bool) {
	call := Part{Kind: Call, Name: o.Text("name"), ID: o.Text("call_id")}
	switch o.Text("type") {
	case "function_call":
		call.Text = arguments(o["arguments"])
		return []Part{call}, true
	case "custom_tool_call":
		call.Text = arguments(o["input"])
		return []Part{call}, true
	case "local_shell_call", "web_search_call", "tool_search_call":
		call.Name, call.Text = strings.TrimSuffix(o.Text("type"), "_call"), string(o.first("action", "arguments", "query"))
		return []Part{call}, true
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		return []Part{{Kind: Result, ID: call.ID, Text: output(o.first("output", "tools"))}}, true
	case "reasoning":
		for _, text := range []json.RawMessage{o["summary"], o["content"]} {
			for _, p := range Content(text) {
				parts = append(parts, Part{Kind: Thought, Text: p.Text})
			}
		}
		return parts, o["summary"] != nil || o["content"] != nil
	}
	if strings.EqualFold(o.Text("role"), "bashExecution") {
		result := Part{Kind: Result, Text: o.Text("output")}
		return []Part{{Kind: Call, Name: "bash", Text: string(o["command"]), Results: []Part{result}}}, true
	}
	return nil, false
}
