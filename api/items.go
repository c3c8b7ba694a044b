package api

import (
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
)

// shownItem is an item as the Conversations API shows it.
type shownItem struct {
	id   string
	item json.RawMessage
}

type itemList struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	FirstID string            `json:"first_id"`
	LastID  string            `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

func listOf(items []shownItem, more bool) itemList {
	l := itemList{Object: "list", Data: []json.RawMessage{}, HasMore: more}
	for _, x := range items {
		l.Data = append(l.Data, x.item)
	}
	if n := len(items); n > 0 {
		l.FirstID, l.LastID = items[0].id, items[n-1].id
	}
	return l
}

// prefixes are those of ids, by the types of items.
var prefixes = map[string]string{"message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "reasoning": "rs_"}

// showItem adds what items have that were sent in a short form: an id, a type, a status, and a list of content.
func showItem(id uuid.UUID, body json.RawMessage) shownItem {
	item := map[string]json.RawMessage{}
	if json.Unmarshal(body, &item) != nil {
		return shownItem{"", body}
	}
	text := func(member string) (s string) {
		_ = json.Unmarshal(item[member], &s) // "" if it is no text
		return s
	}
	set := func(member string, value any) {
		if b, err := json.Marshal(value); err == nil {
			item[member] = b
		}
	}
	if item["type"] == nil && item["role"] != nil {
		set("type", "message")
	}
	kind := text("type")
	if text("id") == "" {
		prefix := prefixes[kind]
		if prefix == "" {
			prefix = "item_"
		}
		set("id", prefix+hex.EncodeToString(id[:]))
	}
	if kind == "message" {
		if item["status"] == nil {
			set("status", "completed")
		}
		var content string
		if c := string(item["content"]); c != "" && c != "null" && json.Unmarshal(item["content"], &content) == nil {
			part := map[string]any{"type": "input_text", "text": content}
			if text("role") == "assistant" {
				part["type"], part["annotations"] = "output_text", []any{}
			}
			set("content", []any{part})
		}
	}
	b, err := json.Marshal(item)
	if err != nil {
		return shownItem{text("id"), body}
	}
	return shownItem{text("id"), b}
}

// readOther reads a document of another API: members that are not known are ignored, and a missing body is an empty one.
func readOther(r *http.Request, into any) error {
	b, err := readAll(r)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return invalid("the body is not valid: %v", err)
	}
	return nil
}
