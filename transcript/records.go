package transcript

import (
	"encoding/json"
	"strings"
)

// recordParts splits the records of agent tools that are not chat messages; ok is false for any other record.
func recordParts(o Object) (parts []Part, ok bool) {
	switch {
	case ObjectOf(o["info"]) != nil && KindOf(o["parts"]) == '[': // opencode
		return Content(o["parts"]), true
	case KindOf(o["toolCalls"]) == '[' || KindOf(o["thoughts"]) == '[': // Gemini CLI
		return geminiParts(o), true
	case ObjectOf(o["data"]) != nil && strings.Contains(o.Text("type"), "."): // Copilot CLI
		return copilotParts(ObjectOf(o["data"])), true
	case o["source"] != nil && (o["action"] != nil || o["observation"] != nil || o["llm_message"] != nil): // OpenHands
		return openHandsParts(o), true
	case o["mapping"] == nil && o["parent"] != nil && ObjectOf(o["message"])["author"] != nil: // ChatGPT
		return chatGPTParts(o, ObjectOf(o["message"]))
	case o.Text("type") == "compacted" && ObjectOf(o["payload"]) != nil: // Codex
		return []Part{{Text: ObjectOf(o["payload"]).Text("message")}}, true
	}
	return nil, false
}

func geminiParts(o Object) (parts []Part) {
	for _, t := range List(o["thoughts"]) {
		thought := ObjectOf(t)
		parts = append(parts, Part{Kind: Thought, Text: strings.TrimSpace(thought.Text("subject") + "\n" + thought.Text("description"))})
	}
	parts = append(parts, Content(o["content"])...)
	for _, c := range List(o["toolCalls"]) {
		o := ObjectOf(c)
		call := Part{Kind: Call, Name: o.Text("name"), ID: o.Text("id"), Text: arguments(o["args"])}
		text := o.Text("resultDisplay")
		if text == "" {
			text = Join(Content(o["result"]))
		}
		if text != "" {
			call.Results = []Part{{Kind: Result, ID: call.ID, Text: text, Failed: o.Text("status") == "error"}}
		}
		parts = append(parts, call)
	}
	return parts
}

func copilotParts(data Object) (parts []Part) {
	if t := data.Text("reasoningText"); t != "" {
		parts = append(parts, Part{Kind: Thought, Text: t})
	}
	if t := data.Text("content"); t != "" {
		parts = append(parts, Part{Text: t})
	}
	for _, r := range List(data["toolRequests"]) {
		request := ObjectOf(r)
		parts = append(parts, Part{
			Kind: Call, Name: request.Text("name"), ID: request.Text("toolCallId"), Text: arguments(request["arguments"]),
		})
	}
	if result := ObjectOf(data["result"]); result != nil {
		parts = append(parts, Part{Kind: Result, ID: data.Text("toolCallId"), Text: result.Text("content", "detailedContent")})
	} else if failure := ObjectOf(data["error"]); failure != nil {
		parts = append(parts, Part{Kind: Result, ID: data.Text("toolCallId"), Text: failure.Text("message"), Failed: true})
	}
	for _, a := range List(data["attachments"]) {
		parts = append(parts, Part{Kind: Attachment, Text: strings.TrimSpace("file " + ObjectOf(a).Text("displayName", "path"))})
	}
	return parts
}

// openHandsParts splits an event. In version 1 an action and an observation are objects.
func openHandsParts(o Object) []Part {
	if m := ObjectOf(o["llm_message"]); m != nil {
		return Content(m["content"])
	}
	args, action, observation := ObjectOf(o["args"]), ObjectOf(o["action"]), ObjectOf(o["observation"])
	id := o.Text("tool_call_id")
	switch {
	case observation != nil:
		return []Part{{Kind: Result, ID: id, Name: o.Text("tool_name"), Text: Join(Content(observation["content"]))}}
	case action != nil:
		return append(Content(o["thought"]), Part{Kind: Call, Name: o.Text("tool_name"), ID: id, Text: string(o["action"])})
	case o["observation"] != nil: // its cause is the number of the action
		return []Part{{Kind: Result, ID: string(o["cause"]), Name: o.Text("observation"), Text: o.Text("content")}}
	case args.Text("content") != "":
		return []Part{{Text: args.Text("content")}}
	}
	var parts []Part
	if t := args.Text("thought"); t != "" {
		parts = append(parts, Part{Text: t})
	}
	return append(parts, Part{Kind: Call, Name: o.Text("action"), ID: string(o["id"]), Text: string(o["args"])})
}

// chatGPTParts splits a node of a tree of ChatGPT where the model calls a tool, or the tool answers: the answer is a child
// of the call.
func chatGPTParts(node, m Object) ([]Part, bool) {
	author := ObjectOf(m["author"])
	to := m.Text("recipient")
	switch {
	case Voice(author.Text("role")) == Tool:
		return []Part{{Kind: Result, ID: node.Text("parent"), Name: author.Text("name"), Text: Join(Content(m["content"]))}}, true
	case to != "" && to != "all":
		return []Part{{Kind: Call, Name: to, ID: node.Text("id"), Text: Join(Content(m["content"]))}}, true
	}
	return nil, false
}

// output is the result of a tool: a text, blocks, or an object with a text under "output" or "content".
func output(v json.RawMessage) string {
	if o := ObjectOf(v); o != nil {
		if t := o.Text("output", "content"); t != "" {
			return t
		}
		return string(v)
	}
	if parts := Content(v); len(parts) > 0 {
		return Join(parts)
	}
	return string(v)
}
