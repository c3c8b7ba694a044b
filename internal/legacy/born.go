package legacy

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// roles maps common role names to those of the old program.
var roles = map[string]string{
	"system":    "System",
	"developer": "System",
	"user":      "User",
	"human":     "User",
	"assistant": "Assistant",
	"model":     "Assistant",
	"ai":        "Assistant",
	"tool":      "Tool",
	"function":  "Tool",
}

// NewNode builds the node of a message that came from no node. A message in the old program's form stays as it is. Of
// any other, NewNode takes the text, and keeps the whole in "original". parent is the previous message's key, or null.
func NewNode(key, parent jsontext.Value, role string, created time.Time, body json.RawMessage) jsontext.Value {
	value := jsontext.Value(body)
	if !isMessage(body) {
		value = newMessage(role, created, body)
	}
	return Members{{Quote(nameID), key}, {Quote(nameMessage), value}, {Quote("parent_id"), parent}}.Object(nil)
}

// isMessage reports whether the old program can read a message.
func isMessage(body json.RawMessage) bool {
	role, content := "", jsontext.Kind(0)
	if err := message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "role":
			role = message.Short(v)
		case "content":
			content = v.Kind()
		}
		return nil
	}); err != nil {
		return false
	}
	return content == '[' && slices.Contains([]string{"System", "User", "Assistant", "Tool"}, role)
}

func newMessage(role string, created time.Time, body json.RawMessage) jsontext.Value {
	name, ok := roles[strings.ToLower(role)]
	if !ok {
		name = "User"
	}
	content := []byte{'['}
	texts(jsontext.Value(body), 0, func(text jsontext.Value) {
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, Members{{Quote("type"), Quote("text")}, {Quote("text"), text}}.Object(nil)...)
	})
	metadata := jsontext.Value("null")
	if !created.IsZero() {
		metadata = Members{{Quote("created_at"), Quote(created.UTC().Format(time.RFC3339Nano))}}.Object(nil)
	}
	return Members{
		{Quote("role"), Quote(name)}, {Quote("content"), append(content, ']')}, {Quote("metadata"), metadata},
		{Quote("message_type"), Quote("text")}, {Quote("original"), jsontext.Value(body)},
	}.Object(nil)
}

// texts finds the texts of a message in the common forms: a string in "content"; strings, or "text" of objects, in an
// array there; else "text" of the message, or the same in its "message".
func texts(v jsontext.Value, depth int, f func(jsontext.Value)) {
	if v.Kind() != '{' || depth > 2 {
		return
	}
	ms, err := MembersOf(v)
	if err != nil {
		return
	}
	switch content := ms.Get("content"); content.Kind() {
	case '"':
		f(content)
	case '[':
		parts, _ := elements(content) // it was parsed before
		for _, part := range parts {
			switch part.Kind() {
			case '"':
				f(part)
			case '{':
				if of, err := MembersOf(part); err == nil && of.Get("text").Kind() == '"' {
					f(of.Get("text"))
				}
			}
		}
	default:
		if text := ms.Get("text"); text.Kind() == '"' {
			f(text)
			return
		}
		texts(ms.Get(nameMessage), depth+1, f)
	}
}

// NewState converts a state for the old program: it keeps a text, or an object with one member; all others are idle.
func NewState(state jsontext.Value) jsontext.Value {
	switch state.Kind() {
	case '"':
		return state
	case '{':
		if ms, err := MembersOf(state); err == nil && len(ms) == 1 {
			return state
		}
	}
	return Quote("idle")
}

// NewConfig adds the members that the old program requires to a configuration.
func NewConfig(config jsontext.Value) jsontext.Value {
	ms, err := MembersOf(config)
	if err != nil {
		ms = Members{}
	}
	for _, need := range []Member{
		{Quote("model_id"), Quote("")}, {Quote("mode"), Quote("chat")}, {Quote("parameters"), jsontext.Value("{}")},
	} {
		if name, _ := Text(need.Name); ms.Last(name) < 0 {
			ms = append(ms, need)
		}
	}
	return ms.Object(nil)
}
