package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// part is a piece of a message, as people see it.
type part struct {
	kind partKind
	name string // of the tool
	text string
}

type partKind int

const (
	textPart     partKind = iota
	thoughtPart           // a thought of the model
	callPart              // the arguments of a tool call
	resultPart            // the result of a tool
	attachedPart          // the description of an image or a file
	otherPart             // other JSON
)

type members map[string]json.RawMessage

// objectOf returns the members of a JSON object, nil for another value.
func objectOf(v json.RawMessage) members {
	var o members
	if kindOf(v) != '{' || json.Unmarshal(v, &o) != nil {
		return nil
	}
	return o
}

// kindOf is the first byte of a JSON value, 0 if there is none.
func kindOf(v json.RawMessage) byte {
	if v = bytes.TrimLeft(v, " \t\r\n"); len(v) > 0 {
		return v[0]
	}
	return 0
}

func (o members) text(keys ...string) string {
	for _, k := range keys {
		var s string
		if kindOf(o[k]) == '"' && json.Unmarshal(o[k], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// valueAt returns the value at an RFC 6901 pointer, nil if there is none.
func valueAt(v json.RawMessage, pointer string) json.RawMessage {
	if pointer == "" {
		return v
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if kindOf(v) == '[' {
			i, err := strconv.Atoi(token)
			all := list(v)
			if err != nil || i < 0 || i >= len(all) {
				return nil
			}
			v = all[i]
			continue
		}
		v = objectOf(v)[token]
	}
	return v
}

func list(v json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	if kindOf(v) != '[' || json.Unmarshal(v, &l) != nil {
		return nil
	}
	return l
}

// chatObject is the chat message in a record: the record itself, or the message in the record of a session.
func chatObject(body json.RawMessage) members {
	o := objectOf(body)
	for _, k := range []string{"message", "payload"} {
		if inner := objectOf(o[k]); inner != nil && o["content"] == nil {
			return inner
		}
	}
	return o
}

// partsOf splits a message of any framework into parts. An unknown message is one part of JSON.
func partsOf(body json.RawMessage) []part {
	if parts, ok := toolRecordParts(objectOf(body)); ok {
		return parts
	}
	o := chatObject(body)
	var parts []part
	if t := o.text("reasoning_content"); t != "" {
		parts = append(parts, part{kind: thoughtPart, text: t})
	}
	parts = append(parts, contentParts(o["content"])...)
	role := o.text("role")
	if author := objectOf(o["author"]); role == "" {
		role = author.text("role")
	}
	if voice(role) == "tool" || o.text("type") == "function_call_output" {
		result := part{kind: resultPart, text: joinText(parts)}
		if t := o.text("output"); t != "" {
			result.text = t
		}
		parts = []part{result}
	}
	for _, c := range list(o["tool_calls"]) {
		call := objectOf(c)
		f := objectOf(call["function"])
		if f == nil {
			f = call
		}
		parts = append(parts, part{callPart, f.text("name"), argumentText(f["arguments"])})
	}
	if o.text("type") == "function_call" {
		parts = append(parts, part{callPart, o.text("name"), argumentText(o["arguments"])})
	}
	if o.text("role") == "bashExecution" {
		parts = []part{{callPart, "bash", o.text("command")}, {kind: resultPart, text: o.text("output")}}
	}
	if len(parts) == 0 {
		parts = contentParts(o["parts"])
	}
	if t := o.text("text", "summary"); t != "" && len(parts) == 0 {
		parts = []part{{text: t}}
	}
	if len(parts) == 0 && o["content"] == nil {
		parts = []part{{kind: otherPart, text: string(body)}}
	}
	return parts
}

// contentParts splits the content of a message: a text, a list of blocks, or an object with parts.
func contentParts(v json.RawMessage) []part {
	switch kindOf(v) {
	case '"':
		var s string
		if json.Unmarshal(v, &s) == nil && s != "" {
			return []part{{text: s}}
		}
	case '[':
		var parts []part
		for _, b := range list(v) {
			parts = append(parts, blockParts(b)...)
		}
		return parts
	case '{':
		o := objectOf(v)
		if o["parts"] != nil {
			return contentParts(o["parts"])
		}
		return blockParts(v)
	}
	return nil
}

func blockParts(v json.RawMessage) []part {
	if kindOf(v) != '{' {
		return contentParts(v)
	}
	if p, ok := payloadOf(v); ok {
		return []part{{kind: attachedPart, text: attachmentLine("payload", p.MediaType, "", p.Size)}}
	}
	o := objectOf(v)
	switch t := o.text("type", "content_type"); t {
	case "thinking", "reasoning", "thoughts":
		if s := o.text("thinking", "text"); s != "" {
			return []part{{kind: thoughtPart, text: s}}
		}
		return nil
	case "tool_use", "tool-call", "server_tool_use", "toolCall":
		return []part{{callPart, o.text("name", "toolName"), argumentText(first(o, "input", "args", "arguments"))}}
	case "tool_result", "tool-result":
		content := contentParts(o["content"])
		if content == nil {
			content = contentParts(o["output"])
		}
		return []part{{kind: resultPart, text: joinText(content)}}
	case "image", "image_url", "input_image", "image_asset_pointer", "document", "file", "audio", "input_audio":
		return []part{{kind: attachedPart, text: attachment(t, o, v)}}
	}
	if call := objectOf(o["functionCall"]); call != nil {
		return []part{{callPart, call.text("name"), argumentText(call["args"])}}
	}
	if r := objectOf(o["functionResponse"]); r != nil {
		return []part{{resultPart, r.text("name"), string(r["response"])}}
	}
	if s := o.text("text"); s != "" {
		return []part{{text: s}}
	}
	if o["text"] != nil {
		return contentParts(o["text"])
	}
	return []part{{kind: otherPart, text: string(v)}}
}

func first(o members, keys ...string) json.RawMessage {
	for _, k := range keys {
		if o[k] != nil {
			return o[k]
		}
	}
	return nil
}

// argumentText is the arguments of a call: JSON, or a text that holds JSON.
func argumentText(v json.RawMessage) string {
	var s string
	if kindOf(v) == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

func joinText(parts []part) string {
	var texts []string
	for _, p := range parts {
		switch p.kind {
		case attachedPart:
			texts = append(texts, "["+p.text+"]")
		default:
			texts = append(texts, p.text)
		}
	}
	return strings.Join(texts, "\n")
}
