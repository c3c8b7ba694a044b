package transcript

import (
	"encoding/json"
)

// Content splits the content of a message: a text, a list of blocks, or an object with parts.
func Content(v json.RawMessage) []Part {
	switch KindOf(v) {
	case '"':
		var s string
		if json.Unmarshal(v, &s) == nil && s != "" {
			return []Part{{Text: s}}
		}
	case '[':
		var parts []Part
		for _, b := range List(v) {
			parts = append(parts, block(b)...)
		}
		return parts
	case '{':
		if o := ObjectOf(v); o["parts"] != nil {
			return Content(o["parts"])
		}
		return block(v)
	}
	return nil
}

func block(v json.RawMessage) []Part {
	if KindOf(v) != '{' {
		return Content(v)
	}
	if p, ok := payloadOf(v); ok {
		file := &FileRef{MediaType: p.MediaType, Payload: &p}
		return []Part{{Kind: Attachment, Text: attachmentLine("payload", p.MediaType, "", p.Size), File: file}}
	}
	o := ObjectOf(v)
	switch t := o.Text("type", "content_type"); t {
	case "thinking", "reasoning", "thoughts":
		if s := o.Text("thinking", "text"); s != "" {
			return []Part{{Kind: Thought, Text: s}}
		}
		return nil
	case "redacted_thinking":
		return nil
	case "refusal":
		return Content(o["refusal"])
	case "tool_use", "tool-call", "toolCall", "server_tool_use":
		return []Part{{
			Kind: Call, Name: o.Text("name", "toolName"), ID: o.Text("id", "toolCallId"), Text: arguments(o.first("input", "args", "arguments")),
		}}
	case "tool_result", "tool-result":
		return []Part{resultOf(o)}
	case "tool":
		if state := ObjectOf(o["state"]); state != nil {
			return []Part{callWithState(o, state)}
		}
	case "image", "image_url", "input_image", "image_asset_pointer", "document", "file", "audio", "input_audio":
		return []Part{attachment(t, o, v)}
	case "step-start", "step-finish", "snapshot", "patch":
		return nil // opencode's bookkeeping
	}
	if call := ObjectOf(o["functionCall"]); call != nil {
		return []Part{{Kind: Call, Name: call.Text("name"), ID: call.Text("id"), Text: arguments(call["args"])}}
	}
	if r := ObjectOf(o["functionResponse"]); r != nil {
		return []Part{{Kind: Result, Name: r.Text("name"), ID: r.Text("id"), Text: string(r["response"])}}
	}
	if s := o.Text("text"); s != "" {
		return []Part{{Text: s}}
	}
	if o["text"] != nil {
		return Content(o["text"])
	}
	return []Part{{Kind: Other, Text: string(v)}}
}

// resultOf is a block with the result of a tool.
func resultOf(o Object) Part {
	content := Content(o["content"])
	if content == nil {
		content = Content(o["output"])
	}
	return Part{Kind: Result, ID: o.Text("tool_use_id", "toolCallId"), Failed: o.isTrue("is_error"), Text: Join(content)}
}

// callWithState is a call of opencode: a part that has its result, too.
func callWithState(o, state Object) Part {
	call := Part{Kind: Call, Name: o.Text("tool"), ID: o.Text("callID"), Text: arguments(state["input"])}
	if text := state.Text("output", "error"); text != "" {
		call.Results = []Part{{Kind: Result, ID: call.ID, Text: text, Failed: state.Text("status") == "error"}}
	}
	return call
}
