package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/api"
)

// TestConversations: the Conversations API of OpenAI over contexts. Items are stored as they come, and shown with what the SDKs
// expect.
func TestConversations(t *testing.T) {
	k := newKit(t, api.Options{})
	type list struct {
		Object  string
		Data    []map[string]any
		FirstID string `json:"first_id"`
		LastID  string `json:"last_id"`
		HasMore bool   `json:"has_more"`
	}
	get := func(into any, method, path, body string) {
		t.Helper()
		a := k.do(method, path, body)
		if err := json.Unmarshal([]byte(a.body), into); err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s %.300s %v", method, path, a.Status, a.body, err)
		}
	}
	var c struct {
		ID, Object string
		Metadata   map[string]string
	}
	get(&c, "POST", "/v1/conversations", `{"metadata":{"topic":"walk"},"items":[{"role":"user","content":"one"}],"unknown":1}`)
	if !strings.HasPrefix(c.ID, "conv_") || c.Object != "conversation" || c.Metadata["topic"] != "walk" {
		t.Errorf("%+v", c)
	}
	items := "/v1/conversations/" + c.ID + "/items"
	var added list
	const call = `{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":"{\"n\": 1.50}"}`
	body := `{"items":[` + call + `,{"role":"assistant","content":[{"type":"output_text","text":"two","annotations":[]}]}]}`
	get(&added, "POST", items, body)
	if len(added.Data) != 2 || added.FirstID != "fc_1" || added.Data[0]["name"] != "look" || added.HasMore {
		t.Errorf("%+v", added)
	}
	get(&added, "POST", items, `{"items":[`+call+`]}`) // again: it has its own id
	for range 2 {                                      // the second time as a retry
		a := k.do("POST", items, `{"items":[{"role":"user","content":"again"},`+call+`]}`, "Idempotency-Key: one")
		if a.StatusCode != http.StatusOK {
			t.Errorf("%s %.300s", a.Status, a.body)
		}
	}
	var once list
	get(&once, "GET", items, "")
	if len(once.Data) != 4 {
		t.Errorf("%+v", once)
	}
	get(&struct{}{}, "DELETE", items+"/"+once.FirstID, "")
	var all list
	get(&all, "GET", items+"?order=asc", "")
	if len(all.Data) != 3 || all.Data[0]["type"] != "message" || all.Data[0]["status"] != "completed" || all.Data[1]["id"] != "fc_1" {
		t.Fatalf("%+v", all)
	}
	if content := fmt.Sprint(all.Data[0]["content"]); content != "[map[text:one type:input_text]]" {
		t.Error(content)
	}
	a := k.do("GET", "/v1/contexts/"+strings.TrimPrefix(c.ID, "conv_")[:8]+"/branches/main/messages", "")
	if !strings.Contains(a.body, `"arguments":"{\"n\": 1.50}"`) || !strings.Contains(a.body, `"message":{"role":"user","content":"one"}`) {
		t.Errorf("not stored as it came: %s", a.body)
	}
	var page list
	get(&page, "GET", items+"?limit=2", "")
	if len(page.Data) != 2 || !page.HasMore || page.FirstID != all.LastID {
		t.Errorf("%+v", page)
	}
	get(&page, "GET", items+"?limit=2&after="+page.LastID, "")
	if len(page.Data) != 1 || page.HasMore || page.LastID != all.FirstID {
		t.Errorf("%+v", page)
	}
	get(&c, "DELETE", items+"/fc_1", "") // in the middle
	get(&c, "DELETE", items+"/"+all.LastID, "")
	get(&all, "GET", items, "")
	if len(all.Data) != 1 || all.Data[0]["id"] != page.LastID {
		t.Errorf("%+v", all)
	}
	for path, want := range map[string]int{
		items + "/fc_1": http.StatusNotFound, items + "/none": http.StatusNotFound,
		"/v1/conversations/conv_" + strings.Repeat("0", 32): http.StatusNotFound, "/v1/conversations/..%2f..": http.StatusNotFound,
	} {
		if a := k.do("DELETE", path, ""); a.StatusCode != want {
			t.Errorf("%s: %s", path, a.Status)
		}
	}
	for _, body := range []string{`{"items":[]}`, `{"items":["text"]}`, `{"items":[{"id":"` + strings.Repeat("x", 300) + `"}]}`, `{`} {
		if a := k.do("POST", items, body); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40s: %s", body, a.Status)
		}
	}
	get(&struct{ Deleted bool }{}, "DELETE", "/v1/conversations/"+c.ID, "")
	if a := k.do("GET", items, ""); a.StatusCode != http.StatusNotFound {
		t.Error(a.Status)
	}
	if a := newKit(t, api.Options{ReadOnly: true}).do("POST", "/v1/conversations", "{}"); a.StatusCode != http.StatusForbidden {
		t.Error(a.Status)
	}
}
