package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/clients/go"
)

// dot is a PNG of 3 times 2 pixels.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADklEQVR4nGNogAEGOAsAWhQJAbISPYcAAAAASUVORK5CYII="

var long = strings.Repeat("é", 50_000)

// conversation is two turns: an edit that fails, one whose result comes after the next prompt, and one without a result.
var conversation = []string{
	`{"role":"system","content":"Be brief."}`,
	`{"role":"user","content":[{"type":"text","text":"Mend the\nlock"},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + dot + `"}}]}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"Hm."},{"type":"tool_use","id":"t1","name":"Edit",` +
		`"input":{"file_path":"lock.go","old_string":"a\nb","new_string":"a\nc\nd"}}]}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no such text"}]}`,
	`{"role":"assistant","content":[{"type":"text","text":"I run it."},` +
		`{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"make\ntest"}}]}`,
	`{"role":"user","content":"And the tests, please"}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"` + long + `"}]}`,
	`{"role":"assistant","content":[{"type":"text","text":"Done."},` +
		`{"type":"tool_use","id":"t3","name":"Read","input":{"file_path":"lock.go"}}]}`,
}

// outline uses the operations that show a conversation as people read it.
func (k *kit) outline() {
	k.Helper()
	ctx := k.Context()
	made := ok[*client.CreateContextResponse](k, 201)(k.c.CreateContextWithResponse(ctx, nil, client.NewContext{Title: ptr("Locks")}))
	id := made.JSON201.ID.String()
	for i, m := range conversation {
		if _, err := k.c.Append(ctx, id, "main", fmt.Sprint("outline ", i), json.RawMessage(m)); err != nil {
			k.Fatal(err)
		}
	}
	k.parts(id)
	k.turns(id)
	m := ok[*client.GetMapResponse](k, 200)(k.c.GetMapWithResponse(ctx, id, "main", &client.GetMapParams{Stretches: ptr(2)})).JSON200
	if m.Length != 8 || m.Turns != 2 || m.Size != 4 ||
		m.Prompts[0] != 1 || m.Prompts[1] != 1 || m.Edits[0] != 1 || m.Failures[0] != 1 || m.Calls[1] != 2 {
		k.Errorf("map: %+v", m)
	}
	ok[*client.GetMapResponse](k, 404)(k.c.GetMapWithResponse(ctx, id, "none", nil))
	list := ok[*client.ListContextsResponse](k, 200)(k.c.ListContextsWithResponse(ctx, &client.ListContextsParams{
		Outline: ptr(true), Title: ptr("Locks"),
	})).JSON200
	if len(list.Contexts) != 1 || list.Contexts[0].Outline == nil ||
		*list.Contexts[0].Outline != (client.ContextOutline{Added: 2, Removed: 1, Answer: "Done."}) {
		k.Errorf("list: %+v", list)
	}
	live := ok[*client.ListLiveResponse](k, 200)(k.c.ListLiveWithResponse(ctx)).JSON200
	for _, c := range live.Contexts {
		if c.Context.String() == id && (c.State != "works" || c.Newest != "Done." || c.Call == nil || c.Call.Tool != "read" ||
			c.Call.Summary != "lock.go") {
			k.Errorf("live: %+v", c)
		}
	}
	if len(live.Contexts) == 0 {
		k.Error("nothing is live")
	}
}

func (k *kit) parts(id string) {
	k.Helper()
	ctx := k.Context()
	read := func(p client.ListPartsParams) []client.ReadMessage {
		k.Helper()
		return ok[*client.ListPartsResponse](k, 200)(k.c.ListPartsWithResponse(ctx, id, "main", &p)).JSON200.Messages
	}
	all := read(client.ListPartsParams{})
	if len(all) != len(conversation) || len(all[3].Parts)+len(all[6].Parts) != 0 {
		k.Fatalf("parts: %+v", all)
	}
	turned := ok[*client.ListPartsResponse](k, 200)(k.c.ListPartsWithResponse(ctx, id, "main", &client.ListPartsParams{
		From: ptr(int64(6)), Turns: ptr(true), Whole: ptr(true),
	})).JSON200
	if turned.From != 5 || len(turned.Messages) != 3 || len(*turned.Turns) != 1 || (*turned.Turns)[0].Number != 2 {
		k.Errorf("a range with its turns: %+v", turned)
	}
	image := all[1].Parts[1].File
	if image == nil || *image.Width != 3 || *image.Height != 2 || *image.Bytes != 71 {
		k.Errorf("image: %+v", image)
	}
	edit := all[2].Parts[1]
	if *edit.Tool != "edit" || *edit.Added != 2 || *edit.Removed != 1 || *edit.Summary != "lock.go" || !*(*edit.Results)[0].Failed ||
		*(*edit.Results)[0].Position != 3 {
		k.Errorf("edit: %+v", edit)
	}
	run := all[4].Parts[1]
	result := (*run.Results)[0]
	if *run.Summary != "make test" || *result.Position != 6 ||
		result.Bytes != len(long) || len(result.Text) != 48<<10 || len(*result.Tail) != 16<<10 {
		k.Errorf("run: %s, result of %d bytes at %d", *run.Summary, result.Bytes, *result.Position)
	}
	// The result comes behind the range.
	if some := read(client.ListPartsParams{From: ptr(int64(4)), To: ptr(int64(5))}); len(some) != 1 || some[0].Parts[1].Results == nil {
		k.Errorf("a range: %+v", some)
	}
	// The call comes before the range.
	if some := read(client.ListPartsParams{From: ptr(int64(6))}); len(some) != 2 ||
		some[0].Parts[0].Kind != "result" || some[1].Parts[1].Results != nil {
		k.Errorf("a range: %+v", some)
	}
	part := func(status int, number int, result *int, bytes string) *client.GetPartResponse {
		k.Helper()
		p := &client.GetPartParams{Result: result}
		if bytes != "" {
			p.Range = &bytes
		}
		return ok[*client.GetPartResponse](k, status)(k.c.GetPartWithResponse(ctx, id, "main", all[6].ID, number, p))
	}
	if whole := part(200, 0, nil, ""); string(whole.Body) != long || whole.HTTPResponse.Header.Get("Content-Disposition") != "attachment" {
		k.Errorf("a part of %d bytes, %v", len(whole.Body), whole.HTTPResponse.Header)
	}
	if some := part(206, 0, nil, "bytes=2-5"); string(some.Body) != "éé" {
		k.Errorf("a range of a part: %q", some.Body)
	}
	part(http.StatusRequestedRangeNotSatisfiable, 0, nil, "bytes=1000000-")
	part(404, 1, nil, "")
	part(404, 0, ptr(0), "")
	part(404, 5, ptr(0), "")
}

func (k *kit) turns(id string) {
	k.Helper()
	list := func(p client.ListTurnsParams) *client.TurnList {
		k.Helper()
		return ok[*client.ListTurnsResponse](k, 200)(k.c.ListTurnsWithResponse(k.Context(), id, "main", &p)).JSON200
	}
	all := list(client.ListTurnsParams{})
	if all.Count != 2 || all.Length != 8 || len(all.Turns) != 3 || all.Next != nil {
		k.Fatalf("turns: %+v", all)
	}
	first, second := all.Turns[1], all.Turns[2]
	if first.From != 1 || first.To != 5 || first.Prompt != "Mend the lock" || *first.Answer != "I run it." ||
		first.Failed != 1 || first.Added != 2 || first.Calls["edit"] != 1 || first.Calls["shell"] != 1 || len(first.Calls) != 2 {
		k.Errorf("turn 1: %+v", first)
	}
	if second.From != 5 || second.To != 8 || second.Prompt != "And the tests, please" || *second.Answer != "Done." {
		k.Errorf("turn 2: %+v", second)
	}
	for name, c := range map[string]struct {
		params client.ListTurnsParams
		want   []int64
		next   int64
	}{
		"the last":         {client.ListTurnsParams{Limit: ptr(1)}, []int64{2}, 0},
		"from one":         {client.ListTurnsParams{Limit: ptr(1), From: ptr(int64(1))}, []int64{1}, 2},
		"at a position":    {client.ListTurnsParams{At: ptr(int64(4))}, []int64{1, 2}, 0},
		"behind the end":   {client.ListTurnsParams{From: ptr(int64(9))}, nil, 0},
		"with words":       {client.ListTurnsParams{Q: ptr("THE lo")}, []int64{1}, 0},
		"with a word, one": {client.ListTurnsParams{Q: ptr("the"), Limit: ptr(1)}, []int64{1}, 2},
		"and the next one": {client.ListTurnsParams{Q: ptr("the"), From: ptr(int64(2))}, []int64{2}, 0},
		"with other words": {client.ListTurnsParams{Q: ptr("lighthouse")}, nil, 0},
	} {
		got, next := list(c.params), int64(0)
		if got.Next != nil {
			next = *got.Next
		}
		var numbers []int64
		for _, turn := range got.Turns {
			numbers = append(numbers, turn.Number)
		}
		if len(numbers) != len(c.want) || next != c.next {
			k.Errorf("%s: %d, next %d; want %d, %d", name, numbers, next, c.want, c.next)
			continue
		}
		for i := range numbers {
			if numbers[i] != c.want[i] {
				k.Errorf("%s: %d, want %d", name, numbers, c.want)
			}
		}
	}
	ok[*client.ListTurnsResponse](k, 400)(k.c.ListTurnsWithResponse(k.Context(), id, "main", &client.ListTurnsParams{
		From: ptr(int64(0)), At: ptr(int64(0)),
	}))
}

// TestOutline is the part of [TestScenario] that shows a conversation.
func TestOutline(t *testing.T) { newKit(t, api.Options{}).outline() }
