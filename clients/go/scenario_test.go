package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/clients/go"
	"github.com/google/uuid"
)

// odd is a message that encoding/json would change.
const odd = `{"role":"user","content":"a<b>&\u0000 \u2028","f":1.50e2,"k":1,"k":2,"n":12345678901234567890}`

// ok fails the test if a call failed or answered with another status.
func ok[T interface{ StatusCode() int }](k *kit, status int) func(T, error) T {
	return func(r T, err error) T {
		k.Helper()
		if err != nil {
			k.Fatal(err)
		}
		if r.StatusCode() != status {
			k.Fatalf("status %d, want %d: %+v", r.StatusCode(), status, r)
		}
		return r
	}
}

func ptr[T any](v T) *T { return &v }

// TestScenario uses every operation, and compares each request and response with the contract.
func TestScenario(t *testing.T) {
	k := newKit(t, api.Options{Version: "test"})
	ctx := t.Context()
	ok[*client.GetHealthResponse](k, 200)(k.c.GetHealthWithResponse(ctx))
	ok[*client.GetStoreResponse](k, 200)(k.c.GetStoreWithResponse(ctx))
	id := k.contexts()
	k.messages(id)
	k.branches(id)
	k.commit(id)
	k.find(id)
	k.usage(id)
	k.trash(id)
	call := "\x01\x00" // which contexts are there: docs/SYNC.md
	ok[*client.CallReplicaResponse](k, 200)(k.c.CallReplicaWithBodyWithResponse(ctx, "application/octet-stream", strings.NewReader(call)))
	unused := []string{"getContract", "followContext", "followStore"}
	if k.store == nil {
		unused = append(unused, "getBlob")
	}
	for _, item := range specification(t).Paths.Map() {
		for _, op := range item.Operations() {
			if name := op.OperationID; !k.wire.seen[name] && !slices.Contains(unused, name) {
				t.Errorf("the test does not use %s", name)
			}
		}
	}
}

func (k *kit) usage(id string) {
	k.Helper()
	ctx := k.Context()
	answer := json.RawMessage(`{"type":"assistant","message":{"id":"msg_1","model":"claude-sonnet-4-5","role":"assistant",` +
		`"content":[],"usage":{"input_tokens":11,"output_tokens":7,"cache_read_input_tokens":5}}}`)
	if _, err := k.c.Append(ctx, id, "main", "", answer); err != nil {
		k.Fatal(err)
	}
	for _, by := range []client.GetUsageParamsBy{"model", "project", "context", "day", "prompt", "message", "step"} {
		got := ok[*client.GetUsageResponse](k, 200)(k.c.GetUsageWithResponse(ctx, &client.GetUsageParams{
			By: &by, Context: &[]string{id}, TimeZone: ptr("Europe/Paris"), Since: ptr(time.Unix(0, 0)), Limit: ptr(1000),
		})).JSON200
		var total int64
		for _, row := range got.Rows {
			total += row.Total
		}
		if total != got.Sum.Total || total < 18 || got.LeftOut != 0 || got.Sum.Contexts != 1 {
			k.Errorf("by %s: %+v", by, got)
		}
	}
	for _, zone := range []string{"Local", "../etc/passwd", "/etc/localtime"} {
		ok[*client.GetUsageResponse](k, 400)(k.c.GetUsageWithResponse(ctx, &client.GetUsageParams{TimeZone: &zone}))
	}
}

func (k *kit) contexts() string {
	k.Helper()
	ctx := k.Context()
	n := client.NewContext{Title: ptr("walk"), Labels: &map[string]string{"user": "ada"}, Config: json.RawMessage(`{"model_id":"m1","p":1}`)}
	made := ok[*client.CreateContextResponse](k, 201)(
		k.c.CreateContextWithResponse(ctx, &client.CreateContextParams{IdempotencyKey: ptr("k1")}, n))
	again := ok[*client.CreateContextResponse](k, 200)(
		k.c.CreateContextWithResponse(ctx, &client.CreateContextParams{IdempotencyKey: ptr("k1")}, n))
	if made.JSON201.ID != again.JSON200.ID {
		k.Errorf("a retry made another context: %s and %s", made.JSON201.ID, again.JSON200.ID)
	}
	external := client.NewContext{ExternalID: ptr("session 7")}
	open := ok[*client.CreateContextResponse](k, 200)(
		k.c.CreateContextWithResponse(ctx, &client.CreateContextParams{Open: ptr(true)}, external))
	same := ok[*client.CreateContextResponse](k, 200)(
		k.c.CreateContextWithResponse(ctx, &client.CreateContextParams{Open: ptr(true)}, external))
	if open.JSON200.ID != same.JSON200.ID {
		k.Error("an external id has two contexts")
	}
	ok[*client.GetContextResponse](k, 200)(k.c.GetContextWithResponse(ctx, "session 7", nil))

	id := made.JSON201.ID.String()
	got := ok[*client.GetContextResponse](k, 200)(k.c.GetContextWithResponse(ctx, id, nil))
	tag := got.HTTPResponse.Header.Get("ETag")
	ok[*client.GetContextResponse](k, 304)(k.c.GetContextWithResponse(ctx, id, &client.GetContextParams{IfNoneMatch: &tag}))
	change := client.ContextChange{
		Title: ptr("run"), Labels: &map[string]*string{"user": nil, "team": ptr("x")}, Config: json.RawMessage(`{"p":null,"q":2}`),
	}
	changed := ok[*client.ChangeContextResponse](k, 200)(
		k.c.ChangeContextWithResponse(ctx, id, &client.ChangeContextParams{IfMatch: &tag}, change))
	c := changed.JSON200
	if c.Title != "run" || (*c.Labels)["team"] != "x" || len(*c.Labels) != 1 || string(c.Config) != `{"model_id":"m1","q":2}` {
		k.Errorf("after the change: %+v %s", c, c.Config)
	}
	ok[*client.ChangeContextResponse](k, 412)(k.c.ChangeContextWithResponse(ctx, id, &client.ChangeContextParams{IfMatch: &tag}, change))

	first := ok[*client.ListContextsResponse](k, 200)(k.c.ListContextsWithResponse(ctx, &client.ListContextsParams{Limit: ptr(1)}))
	second := ok[*client.ListContextsResponse](k, 200)(
		k.c.ListContextsWithResponse(ctx, &client.ListContextsParams{Limit: ptr(1), Cursor: first.JSON200.Next}))
	if len(first.JSON200.Contexts) != 1 || len(second.JSON200.Contexts) != 1 || second.JSON200.Next != nil {
		k.Errorf("two pages: %+v, %+v", first.JSON200, second.JSON200)
	}
	labelled := ok[*client.ListContextsResponse](k, 200)(
		k.c.ListContextsWithResponse(ctx, &client.ListContextsParams{Label: &[]string{"team=x"}}))
	if len(labelled.JSON200.Contexts) != 1 || labelled.JSON200.Contexts[0].Title != "run" {
		k.Errorf("by label: %+v", labelled.JSON200)
	}
	return id
}

func (k *kit) messages(id string) {
	k.Helper()
	ctx := k.Context()
	for range 2 {
		answer := json.RawMessage(`{"role":"assistant","content":"the flaky lock"}`)
		all, err := k.c.Append(ctx, id, "main", "turn 1", json.RawMessage(odd), answer)
		if err != nil || len(all) != 2 || all[0].Position != 0 || all[1].Position != 1 {
			k.Fatal(all, err)
		}
	}
	mid := uuid.MustParse("01900000-0000-7000-8000-00000000000a")
	for i := range 2 {
		all, err := k.c.AppendEnvelopes(ctx, id, "main", client.Envelope{ID: &mid, Message: json.RawMessage(`{"role":"user","content":"once"}`)})
		if err != nil || len(all) != 1 || (all[0].Existed != nil) != (i == 1) {
			k.Fatal(all, err)
		}
	}
	_, err := k.c.Append(ctx, id, "main", "", json.RawMessage(`{"role":`))
	if p := (client.Problem{}); !errors.As(err, &p) || p.Code != "invalid" || p.Line == nil || *p.Line != 1 {
		k.Errorf("broken JSON: %v", err)
	}
	var bodies []string
	for m, err := range k.c.Messages(ctx, id, "main", &client.ListMessagesParams{From: ptr(int64(0)), To: ptr(int64(2))}) {
		if err != nil {
			k.Fatal(err)
		}
		bodies = append(bodies, string(m.Message))
	}
	if len(bodies) != 2 || bodies[0] != odd {
		k.Errorf("messages: %q", bodies)
	}
	for name, want := range map[string]int{
		"last=1": 1, "around=" + mid.String() + "&before=1": 2, "content=none": 3, "at=2000-01-01T00:00:00Z": 1,
	} {
		if got := strings.Count(k.get("/v1/contexts/"+id+"/branches/main/messages?"+name), "\n"); got != want {
			k.Errorf("%s: %d messages, want %d", name, got, want)
		}
	}
	ok[*client.GetMessageResponse](k, 200)(k.c.GetMessageWithResponse(ctx, id, "main", mid, nil))
	long := json.RawMessage(`{"role":"user","content":"` + strings.Repeat("long ", 10_000) + `"}`)
	if _, err := k.c.AppendEnvelopes(ctx, id, "main", client.Envelope{Message: long}); err != nil {
		k.Fatal(err)
	}
	last := k.last(id)
	payloads := ok[*client.ListPayloadsResponse](k, 200)(k.c.ListPayloadsWithResponse(ctx, id, "main", last))
	if len(payloads.JSON200.Payloads) != 1 {
		k.Fatalf("payloads: %+v", payloads.JSON200)
	}
	sum := payloads.JSON200.Payloads[0].Sha256
	ok[*client.GetPayloadResponse](k, 200)(k.c.GetPayloadWithResponse(ctx, id, "main", last, sum, nil))
	part := ok[*client.GetPayloadResponse](k, 206)(
		k.c.GetPayloadWithResponse(ctx, id, "main", last, sum, &client.GetPayloadParams{Range: ptr("bytes=5-8")}))
	if string(part.Body) != "long" {
		k.Errorf("a range: %q", part.Body)
	}
	ok[*client.GetPayloadResponse](k, 416)(
		k.c.GetPayloadWithResponse(ctx, id, "main", last, sum, &client.GetPayloadParams{Range: ptr("bytes=99999999-")}))
	ok[*client.ReplaceMessageResponse](k, 200)(
		k.c.ReplaceMessageWithBodyWithResponse(ctx, id, "main", last, nil, "application/json", strings.NewReader(odd)))
	body := ok[*client.GetBodyResponse](k, 200)(k.c.GetBodyWithResponse(ctx, id, "main", last))
	if string(body.Body) != odd {
		k.Errorf("body: %s", body.Body)
	}
}

// get sends a request that the client cannot.
func (k *kit) get(path string) string {
	k.Helper()
	r, err := http.NewRequestWithContext(k.Context(), http.MethodGet, k.url+path, nil)
	if err != nil {
		k.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.token)
	resp, err := k.wire.Do(r) //nolint:bodyclose // it is in memory
	if err != nil {
		k.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		k.Fatalf("%s: %s %s %v", path, resp.Status, b, err)
	}
	return string(b)
}

func (k *kit) last(id string) (last uuid.UUID) {
	k.Helper()
	for m, err := range k.c.Messages(k.Context(), id, "main", &client.ListMessagesParams{Last: ptr(int64(1))}) {
		if err != nil {
			k.Fatal(err)
		}
		last = m.ID
	}
	return last
}

func (k *kit) branches(id string) {
	k.Helper()
	ctx := k.Context()
	fork := client.NewBranch{Name: "a/b ü", At: ptr(int64(2))}
	params := &client.CreateBranchParams{IdempotencyKey: ptr("f1")}
	ok[*client.CreateBranchResponse](k, 201)(k.c.CreateBranchWithResponse(ctx, id, params, fork))
	again := ok[*client.CreateBranchResponse](k, 200)(k.c.CreateBranchWithResponse(ctx, id, params, fork))
	if again.JSON200.Messages != 2 || *again.JSON200.Base != 2 {
		k.Errorf("fork: %+v", again.JSON200)
	}
	ok[*client.CreateBranchResponse](k, 409)(k.c.CreateBranchWithResponse(ctx, id, nil, fork))
	ok[*client.CreateBranchResponse](k, 201)(k.c.CreateBranchWithResponse(ctx, id, nil, client.NewBranch{Name: "empty", Empty: ptr(true)}))
	ok[*client.GetBranchResponse](k, 200)(k.c.GetBranchWithResponse(ctx, id, "a/b ü"))
	ok[*client.GetBranchResponse](k, 404)(k.c.GetBranchWithResponse(ctx, id, "none"))
	ok[*client.RenameBranchResponse](k, 200)(k.c.RenameBranchWithResponse(ctx, id, "a/b ü", client.RenameBranchJSONRequestBody{Name: "alt"}))
	ok[*client.RewindBranchResponse](k, 200)(k.c.RewindBranchWithResponse(ctx, id, "alt", nil, client.RewindBranchJSONRequestBody{To: 1}))
	ok[*client.RewindBranchResponse](k, 409)(k.c.RewindBranchWithResponse(ctx, id, "alt", nil, client.RewindBranchJSONRequestBody{To: 9}))
	ok[*client.SwitchBranchResponse](k, 200)(k.c.SwitchBranchWithResponse(ctx, id, "alt"))
	ok[*client.RemoveBranchResponse](k, 400)(k.c.RemoveBranchWithResponse(ctx, id, "alt"))
	ok[*client.SwitchBranchResponse](k, 200)(k.c.SwitchBranchWithResponse(ctx, id, "main"))
	ok[*client.RemoveBranchResponse](k, 204)(k.c.RemoveBranchWithResponse(ctx, id, "empty"))
	list := ok[*client.ListBranchesResponse](k, 200)(k.c.ListBranchesWithResponse(ctx, id))
	if len(list.JSON200.Branches) != 2 {
		k.Errorf("branches: %+v", list.JSON200)
	}
}

func (k *kit) commit(id string) {
	k.Helper()
	ctx := k.Context()
	now := ok[*client.GetContextResponse](k, 200)(k.c.GetContextWithResponse(ctx, id, nil)).JSON200.Sequence
	all := client.Commit{Sequence: &now, Changes: []client.Change{
		{Op: "rewind", Branch: ptr("alt"), To: ptr(int64(0))},
		{Op: "append", Branch: ptr("alt"), Messages: &[]client.Envelope{{Message: json.RawMessage(odd)}}},
		{Op: "update", Update: &client.ContextChange{State: json.RawMessage(`{"step":2}`)}},
		{Op: "fork", Branch: ptr("third"), From: ptr("alt")},
	}}
	done := ok[*client.CommitChangesResponse](k, 200)(k.c.CommitChangesWithResponse(ctx, id, all))
	if done.JSON200.Sequence <= now || len(done.JSON200.Appended) != 1 || done.JSON200.Appended[0].Branch != "alt" {
		k.Errorf("commit: %+v after %d", done.JSON200, now)
	}
	ok[*client.CommitChangesResponse](k, 409)(k.c.CommitChangesWithResponse(ctx, id, all))
	bad := client.Commit{Changes: []client.Change{{Op: "rewind", Branch: ptr("alt"), To: ptr(int64(0))}, {Op: "switch", Branch: ptr("none")}}}
	ok[*client.CommitChangesResponse](k, 404)(k.c.CommitChangesWithResponse(ctx, id, bad))
	if b := ok[*client.GetBranchResponse](k, 200)(k.c.GetBranchWithResponse(ctx, id, "alt")); b.JSON200.Messages != 1 {
		k.Errorf("a commit that failed changed alt: %+v", b.JSON200)
	}
}

func (k *kit) find(id string) {
	k.Helper()
	ctx := k.Context()
	hits := ok[*client.SearchResponse](k, 200)(
		k.c.SearchWithResponse(ctx, &client.SearchParams{Q: ptr("flaky lock"), Context: &[]string{id}}))
	if len(hits.JSON200.Hits) != 1 || hits.JSON200.Behind != 0 {
		k.Fatalf("search: %+v", hits.JSON200)
	}
	ok[*client.SearchResponse](k, 400)(k.c.SearchWithResponse(ctx, nil))
	lines := ok[*client.GrepResponse](k, 200)(k.c.GrepWithResponse(ctx, &client.GrepParams{Regex: "fla.y"}))
	if bytes.Count(lines.Body, []byte{'\n'}) != 1 {
		k.Errorf("grep: %s", lines.Body)
	}
	ok[*client.GrepResponse](k, 400)(k.c.GrepWithResponse(ctx, &client.GrepParams{Regex: "("}))
	text := ok[*client.AssembleResponse](k, 200)(k.c.AssembleWithResponse(ctx, client.AssembleRequest{
		Context: &id, Query: ptr("which lock"), MaxTokens: ptr(500), Explain: ptr(true),
	}))
	if len(text.JSON200.Items) == 0 || text.JSON200.Tokens > 500 {
		k.Errorf("assembly: %+v", text.JSON200)
	}
	kept := ok[*client.AddMomentResponse](k, 201)(k.c.AddMomentWithResponse(ctx, id, client.NewMoment{
		Type: "decision", Content: "use flock", From: &[]uuid.UUID{hits.JSON200.Hits[0].ID},
	}))
	if all := ok[*client.ListMomentsResponse](k, 200)(k.c.ListMomentsWithResponse(ctx, nil)); len(all.JSON200.Moments) != 1 {
		k.Errorf("moments: %+v", all.JSON200)
	}
	ok[*client.RemoveMomentResponse](k, 204)(k.c.RemoveMomentWithResponse(ctx, id, kept.JSON201.ID))
	k.files(id)
	k.outline()
	k.artifacts()
	k.export(id)
	if d := ok[*client.GetDiskResponse](k, 200)(k.c.GetDiskWithResponse(ctx)).JSON200; len(d.Kinds) == 0 || d.Kinds[0].Files == 0 ||
		k.store != nil && d.Kinds[0].Kind != "messages" {
		k.Errorf("disk: %+v", d)
	}
	ok[*client.CheckResponse](k, 200)(k.c.CheckWithResponse(ctx, &client.CheckParams{ReadData: ptr(true)}))
}

func (k *kit) trash(id string) {
	k.Helper()
	ctx := k.Context()
	item := ok[*client.RemoveContextResponse](k, 200)(k.c.RemoveContextWithResponse(ctx, id)).JSON200.Item
	ok[*client.GetContextResponse](k, 404)(k.c.GetContextWithResponse(ctx, id, nil))
	if all := ok[*client.ListTrashResponse](k, 200)(
		k.c.ListTrashWithResponse(ctx, &client.ListTrashParams{Context: &[]string{id}})); len(all.JSON200.Items) == 0 {
		k.Error("the trash does not have the context")
	}
	ok[*client.RestoreItemResponse](k, 200)(k.c.RestoreItemWithResponse(ctx, *item))
	ok[*client.GetContextResponse](k, 200)(k.c.GetContextWithResponse(ctx, id, nil))
}
