package main

import (
	"encoding/json"
	"strings"
)

// toolRecordParts splits the records of tools that are no chat messages; ok is false for any other record.
func toolRecordParts(o members) (parts []part, ok bool) {
	switch {
	case objectOf(o["info"]) != nil && kindOf(o["parts"]) == '[': // opencode
		for _, p := range list(o["parts"]) {
			parts = append(parts, openCodeParts(objectOf(p))...)
		}
	case kindOf(o["toolCalls"]) == '[' || kindOf(o["thoughts"]) == '[': // Gemini CLI
		parts = geminiParts(o)
	case objectOf(o["data"]) != nil && strings.Contains(o.text("type"), "."): // Copilot CLI
		parts = copilotParts(objectOf(o["data"]))
	case o["source"] != nil && (o["action"] != nil || o["observation"] != nil || o["llm_message"] != nil): // OpenHands
		parts = openHandsParts(o)
	case objectOf(o["payload"]) != nil && o["timestamp"] != nil: // Codex
		return codexParts(o.text("type"), objectOf(o["payload"]))
	default:
		return nil, false
	}
	return parts, true
}

func openCodeParts(p members) []part {
	switch p.text("type") {
	case "text":
		return []part{{text: p.text("text")}}
	case "reasoning":
		return []part{{kind: thoughtPart, text: p.text("text")}}
	case "tool":
		state := objectOf(p["state"])
		parts := []part{{callPart, p.text("tool"), argumentText(state["input"])}}
		if result := state.text("output", "error"); result != "" {
			parts = append(parts, part{kind: resultPart, text: result})
		}
		return parts
	case "file":
		return []part{{kind: attachedPart, text: strings.TrimSpace("file " + p.text("filename") + " " + p.text("mime"))}}
	}
	return nil // steps, snapshots and patches
}

func geminiParts(o members) (parts []part) {
	for _, t := range list(o["thoughts"]) {
		thought := objectOf(t)
		parts = append(parts, part{kind: thoughtPart, text: strings.TrimSpace(thought.text("subject") + "\n" + thought.text("description"))})
	}
	parts = append(parts, contentParts(o["content"])...)
	for _, c := range list(o["toolCalls"]) {
		call := objectOf(c)
		parts = append(parts, part{callPart, call.text("name"), argumentText(call["args"])})
		if result := call.text("resultDisplay"); result != "" {
			parts = append(parts, part{kind: resultPart, text: result})
		} else if result := contentParts(call["result"]); len(result) > 0 {
			parts = append(parts, part{kind: resultPart, text: joinText(result)})
		}
	}
	return parts
}

func copilotParts(data members) (parts []part) {
	if t := data.text("reasoningText"); t != "" {
		parts = append(parts, part{kind: thoughtPart, text: t})
	}
	if t := data.text("content"); t != "" {
		parts = append(parts, part{text: t})
	}
	for _, r := range list(data["toolRequests"]) {
		request := objectOf(r)
		parts = append(parts, part{callPart, request.text("name"), argumentText(request["arguments"])})
	}
	if result := objectOf(data["result"]); result != nil {
		parts = append(parts, part{kind: resultPart, text: result.text("content", "detailedContent")})
	} else if failure := objectOf(data["error"]); failure != nil {
		parts = append(parts, part{kind: resultPart, text: failure.text("message")})
	}
	for _, a := range list(data["attachments"]) {
		attached := objectOf(a)
		parts = append(parts, part{kind: attachedPart, text: strings.TrimSpace("file " + attached.text("displayName", "path"))})
	}
	return parts
}

// openHandsParts splits an event. In version 1 an action and an observation are objects.
func openHandsParts(o members) []part {
	if m := objectOf(o["llm_message"]); m != nil {
		return contentParts(m["content"])
	}
	args, action, observation := objectOf(o["args"]), objectOf(o["action"]), objectOf(o["observation"])
	switch {
	case observation != nil:
		return []part{{kind: resultPart, name: o.text("tool_name"), text: joinText(contentParts(observation["content"]))}}
	case action != nil:
		return append(contentParts(o["thought"]), part{callPart, o.text("tool_name"), string(o["action"])})
	case o["observation"] != nil:
		return []part{{kind: resultPart, name: o.text("observation"), text: o.text("content")}}
	case args.text("content") != "":
		return []part{{text: args.text("content")}}
	}
	var parts []part
	if t := args.text("thought"); t != "" {
		parts = append(parts, part{text: t})
	}
	return append(parts, part{callPart, o.text("action"), string(o["args"])})
}

// codexParts splits the response items that are no messages.
func codexParts(envelope string, p members) (parts []part, ok bool) {
	if envelope == "compacted" {
		return []part{{text: p.text("message")}}, true
	}
	switch p.text("type") {
	case "reasoning":
		for _, s := range append(list(p["summary"]), list(p["content"])...) {
			parts = append(parts, part{kind: thoughtPart, text: objectOf(s).text("text")})
		}
	case "custom_tool_call":
		parts = []part{{callPart, p.text("name"), p.text("input")}}
	case "local_shell_call", "web_search_call", "tool_search_call":
		parts = []part{{callPart, strings.TrimSuffix(p.text("type"), "_call"), string(first(p, "action", "arguments", "query"))}}
	case "custom_tool_call_output", "function_call_output", "tool_search_output":
		parts = []part{{kind: resultPart, text: outputText(first(p, "output", "tools"))}}
	default:
		return nil, false
	}
	return parts, true
}

// outputText is the result of a tool: a text, blocks, or an object with a text under "output" or "content".
func outputText(v json.RawMessage) string {
	if o := objectOf(v); o != nil {
		if t := o.text("output", "content"); t != "" {
			return t
		}
		return string(v)
	}
	if parts := contentParts(v); len(parts) > 0 {
		return joinText(parts)
	}
	return string(v)
}
