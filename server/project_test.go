package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// hidden is a context with everything that may tell of it.
type hidden struct{ id, message, sum, line, item, moment, external string }

// fill makes a context of a project, with CANARY in all that it has, and another one in the trash.
func (k *kit) fill(token, project string) (h hidden) {
	k.Helper()
	h.external = "CANARY-EXTERNAL"
	must := func(method, path, body string) string {
		k.Helper()
		a := k.do(token, method, path, body)
		if a.status >= 300 {
			k.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
		}
		return a.body
	}
	var made struct{ ID, Line string }
	read := func(text string) {
		k.Helper()
		if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), &made); err != nil {
			k.Fatal(err, text)
		}
	}
	read(must("POST", "/v1/contexts", `{"title":"CANARY-TITLE","external_id":"CANARY-EXTERNAL","labels":{"project":"`+project+`"}}`))
	h.id = made.ID
	at := "/v1/contexts/" + h.id + "/branches/main/messages"
	long := strings.Repeat("CANARY-PAYLOAD ", 40_000)
	read(must("POST", at, `{"role":"user","content":"CANARY-TEXT"}`))
	must("POST", at, `{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function",`+
		`"function":{"name":"Read","arguments":"{\"file_path\":\"/CANARY-FILE\"}"}}],"usage":{"input_tokens":7,"output_tokens":9}}`)
	read(must("POST", at, `{"role":"user","content":"`+long+`"}`))
	h.message = made.ID
	var payloads struct {
		Payloads []struct{ SHA256 string }
	}
	if err := json.Unmarshal([]byte(must("GET", at+"/"+h.message+"/payloads", "")), &payloads); err != nil || len(payloads.Payloads) != 1 {
		k.Fatal(err, payloads)
	}
	h.sum = payloads.Payloads[0].SHA256
	read(must("POST", "/v1/contexts/"+h.id+"/moments", `{"type":"decision","content":"CANARY-MOMENT"}`))
	h.moment = made.ID
	must("POST", "/v1/contexts/"+h.id+"/branches", `{"name":"CANARY-BRANCH"}`)
	must("DELETE", "/v1/contexts/"+h.id+"/branches/CANARY-BRANCH", "")
	read(must("GET", "/v1/contexts/"+h.id+"/branches/main", ""))
	h.line = made.Line
	read(must("POST", "/v1/contexts", `{"title":"CANARY-REMOVED","labels":{"project":"`+project+`"}}`))
	read(must("DELETE", "/v1/contexts/"+made.ID, ""))
	var trash struct{ Items []struct{ Item string } }
	if err := json.Unmarshal([]byte(must("GET", "/v1/trash", "")), &trash); err != nil || len(trash.Items) == 0 {
		k.Fatal(err, trash, h)
	}
	h.item = trash.Items[0].Item
	return h
}

// nothing is a context that nobody has.
func nothing() hidden {
	sum := strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", "")
	id := uuid.NewString
	return hidden{id(), id(), sum, id(), id(), id(), "no-external"}
}

// requests are requests for a context to each operation of the contract, and to some with more that may tell.
func (k *kit) requests(h hidden) (all [][3]string) {
	in := strings.NewReplacer("{context}", h.id, "{branch}", "main", "{id}", h.message, "{item}", h.item, "{sha256}", h.sum, "{number}", "0")
	bodies := []string{
		`{"context":"` + h.id + `","query":"CANARY","max_tokens":1000}`, `{"query":"CANARY","all":true,"max_tokens":1000}`, `{"title":"x"}`,
		`{"id":"` + h.id + `"}`, `{"external_id":"` + h.external + `"}`, `{"parent_id":"` + h.id + `"}`, `{"name":"x","from":"main"}`,
		`{"changes":[{"op":"rewind","branch":"main","to":0}]}`, `{"to":0}`, `{"format":"jsonl"}`, `{"labels":{"project":"/lantern"}}`,
		`{"type":"decision","content":"x"}`, ``,
	}
	ops := k.operations()
	slices.SortFunc(ops, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	for _, op := range ops {
		path := in.Replace(op[1])
		if op[1] == "/v1/events" || op[1] == "/v1/replica" || strings.HasSuffix(op[1], "/events") {
			continue // see below
		}
		if strings.HasSuffix(op[1], "/moments/{id}") {
			path = "/v1/contexts/" + h.id + "/moments/" + h.moment
		}
		if op[0] != http.MethodPost && op[0] != http.MethodPatch && op[0] != http.MethodPut {
			all = append(all, [3]string{op[0], path, ""})
			continue
		}
		for _, body := range bodies {
			all = append(all, [3]string{op[0], path, body})
		}
	}
	for _, ref := range []string{h.id, h.id[:8], h.id[24:], h.external} {
		of := url.QueryEscape(ref)
		for _, path := range []string{
			"contexts/" + url.PathEscape(ref), "search?q=CANARY&context=" + of, "grep?regex=CANARY&context=" + of, "usage?context=" + of,
			"trash?context=" + of, "check?context=" + of, "moments?context=" + of, "files?context=" + of, "files/paths?context=" + of,
		} {
			all = append(all, [3]string{http.MethodGet, "/v1/" + path, ""})
		}
	}
	for _, path := range []string{
		"search?q=CANARY", "search?q=CANARY&kind=*", "search?path=*CANARY*", "search?q=CANARY&removed=true", "grep?regex=CANARY",
		"contexts?kind=*",
		"contexts?label=project%3D%2Fsecret", "contexts?outline=true", "files?all=true", "files/paths?path=*CANARY*", "usage?by=context",
		"usage?label=project%3D%2Fsecret", "check?read_data=true", "moments?type=decision", "search?q=CANARY&project=%2Fsecret",
	} {
		all = append(all, [3]string{http.MethodGet, "/v1/" + path, ""})
	}
	return all
}

// told compares what requests for a context are told with what they are told for one that nobody has.
func (k *kit) told(token, at string, h hidden) {
	k.Helper()
	none := nothing()
	got, want := k.requests(h), k.requests(none)
	ids := func(h hidden, a answer) string {
		all := []string{h.id, "CONTEXT", h.message, "MESSAGE", h.sum, "SUM", h.item, "ITEM", h.moment, "MOMENT", h.external, "EXTERNAL"}
		all = append(all, h.id[:8], "SHORT", h.id[24:], "SHORT")
		return http.StatusText(a.status) + " " + strings.NewReplacer(all...).Replace(a.body)
	}
	for i, r := range got {
		a := k.do(token, r[0], at+r[1], r[2])
		if a.status == http.StatusCreated { // with an id of its own, that changes each time
			k.undo(token, at, a)
		}
		if strings.Contains(strings.NewReplacer(h.external, "", "query", "").Replace(a.body), "CANARY") {
			k.Errorf("%s %s with %s tells what a hidden conversation has: %s", r[0], r[1], r[2], a.body)
		}
		b := k.do(token, want[i][0], at+want[i][1], want[i][2])
		if b.status == http.StatusCreated {
			k.undo(token, at, b)
		}
		if x, y := ids(h, a), ids(none, b); a.status != http.StatusCreated && x != y {
			k.Errorf("%s %s with %s tells a hidden conversation from none:\n%s\n%s", r[0], r[1], r[2], x, y)
		}
	}
	k.toldAsPeer(token, at, h)
}

// undo removes a context that a request made.
func (k *kit) undo(token, at string, a answer) {
	k.Helper()
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &made); err != nil {
		k.Fatal(err)
	}
	if d := k.do(token, http.MethodDelete, at+"/v1/contexts/"+made.ID, ""); d.status != http.StatusOK {
		k.Fatalf("remove what was made: %d %s", d.status, d.body)
	}
}

// toldAsPeer asks as a store that syncs.
func (k *kit) toldAsPeer(token, at string, h hidden) {
	k.Helper()
	caller := replica.NewHTTP(k.url+at+"/v1/replica", token)
	defer caller.Close()
	p := replica.NewClient(caller, uuid.Nil)
	id, line, message := uuid.MustParse(h.id), uuid.MustParse(h.line), uuid.MustParse(h.message)
	states, err := p.Contexts(k.Context(), map[uuid.UUID]string{id: "x"})
	must(k.T, err)
	for _, s := range states {
		if s.ID == id && (s.Commit != "" || s.Removed) {
			k.Errorf("a peer gets the state of a hidden context: %+v", s)
		}
	}
	heads, err := p.Heads(k.Context(), []replica.HeadRequest{{ID: id}})
	must(k.T, err)
	if heads[0].Err == nil || heads[0].Commit != "" {
		k.Errorf("a peer gets the head of a hidden context: %+v", heads[0])
	}
	all := []replica.Range{{ID: id, Line: line, To: 3, Sums: true}}
	if rows, err := p.Rows(k.Context(), all); err == nil {
		k.Errorf("a peer gets rows of a hidden context: %+v", rows)
	}
	if m, err := p.Read(k.Context(), all, 1<<20); err == nil {
		k.Errorf("a peer reads a hidden context: %+v", m)
	}
	have, err := p.Have(k.Context(), []string{h.sum})
	must(k.T, err)
	if have[0] {
		k.Error("a peer is told of a hidden payload")
	}
	for _, of := range k.visible {
		err = p.Get(k.Context(), []replica.PayloadOf{{Sum: h.sum, ID: of, Line: line, Message: message}}, func(string, int64, io.Reader) error {
			k.Error("a peer gets a hidden payload")
			return nil
		})
		if err != nil {
			k.Logf("payload: %v", err)
		}
	}
	title := "changed"
	results, err := p.Apply(k.Context(), []replica.Change{
		{ID: id, Ops: []replica.Op{{Kind: replica.OpNew, Branch: "x"}}}, {ID: id, Remove: true},
		{ID: uuid.New(), Create: &replica.Meta{Title: title}},
	}, nil)
	for _, r := range results {
		if r.Err == nil {
			k.Error("a peer changes something")
		}
	}
	if err == nil && len(results) != 3 {
		k.Error("a peer got other results", results)
	}
}

// TestProjectIsApart sends requests to each operation with a token of one project, and the ids of another project of the same user,
// and of another user.
func TestProjectIsApart(t *testing.T) { each(t, testProjectIsApart) }

func testProjectIsApart(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	ada := k.tokens["ada"]
	secret := k.fill(ada, "/secret")
	bobs := k.fill(k.tokens["bob"], "/lantern")
	state := func() (all string) {
		for _, path := range []string{"contexts?kind=*", "trash", "contexts/" + secret.id, "contexts/" + secret.id + "/log"} {
			all += k.do(ada, "GET", "/v1/"+path, "").body
		}
		return all
	}
	before := state()
	write := k.token("ada", users.TokenOptions{Project: "/lantern"})
	read := k.token("ada", users.TokenOptions{Project: "/lantern", Scope: users.Read})
	for _, h := range []hidden{secret, bobs} {
		k.told(write, "", h)
		k.told(read, "", h)
	}
	a := k.do(write, "POST", "/v1/contexts", `{"title":"of the lantern","labels":{"tool":"x"}}`)
	var made struct {
		ID     string
		Labels map[string]string
	}
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || made.Labels["project"] != "/lantern" || made.Labels["tool"] != "x" {
		t.Fatalf("what such a token creates: %v %s", err, a.body)
	}
	k.visible = []uuid.UUID{uuid.MustParse(made.ID)}
	for _, h := range []hidden{secret, bobs} {
		k.told(write, "", h) // now that there is something
		k.told(read, "", h)
	}
	for _, body := range []string{`{"labels":{"project":"/secret"}}`, `{"labels":{"project":null}}`} {
		if a := k.do(write, "PATCH", "/v1/contexts/"+made.ID, body); a.status != http.StatusForbidden {
			t.Errorf("moving a context to another project: %d", a.status)
		}
		body = `{"changes":[{"op":"update","update":` + body + `}]}`
		if a := k.do(write, "POST", "/v1/contexts/"+made.ID+"/commit", body); a.status != http.StatusForbidden {
			t.Errorf("moving a context to another project by a commit: %d", a.status)
		}
	}
	if a := k.do(read, "GET", "/v1/contexts/"+made.ID[:13], ""); a.status != http.StatusOK {
		t.Errorf("a context of the project by a part of its id: %d %s", a.status, a.body)
	}
	if a := k.do(read, "GET", "/v1/disk", ""); a.status != http.StatusNotFound {
		t.Errorf("the sizes of the whole store: %d %s", a.status, a.body)
	}
	k.do(ada, "DELETE", "/v1/contexts/"+made.ID, "")
	after := strings.ReplaceAll(state(), "", "")
	if cut := func(s string) string { return s[:strings.Index(s, `"items"`)] }; cut(before) != cut(after) {
		t.Errorf("a token of a project changed what others have:\n%s\n%s", before, after)
	}
}

// TestProjectEvents follows with a token of one project while others change.
func TestProjectEvents(t *testing.T) { each(t, testProjectEvents) }

func testProjectEvents(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	ada := k.tokens["ada"]
	token := k.token("ada", users.TokenOptions{Project: "/lantern"})
	secret := k.create(ada, "CANARY", "CANARY")
	own := k.create(token, "own", "own")
	store, one := k.events(token, "/v1/events"), k.events(token, "/v1/contexts/"+own+"/events")
	_, resp, err := websocket.Dial(t.Context(), k.url+"/v1/contexts/"+secret+"/events", k.subprotocols(token))
	if err == nil || resp.StatusCode != http.StatusNotFound {
		t.Error("a token of one project follows another one", err)
	} else {
		_ = resp.Body.Close()
	}
	other := k.create(ada, "CANARY", "CANARY")
	for _, id := range []string{secret, other} {
		k.do(ada, "POST", "/v1/contexts/"+id+"/branches/main/messages", `{"role":"user","content":"CANARY"}`)
		k.do(ada, "PATCH", "/v1/contexts/"+id, `{"title":"CANARY"}`)
		k.do(ada, "DELETE", "/v1/contexts/"+id, "")
	}
	k.do(token, "POST", "/v1/contexts/"+own+"/branches/main/messages", `{"role":"user","content":"the last"}`)
	if s := store.until("the last"); strings.Contains(s, "CANARY") || strings.Contains(s, secret) || strings.Contains(s, other) {
		t.Errorf("a token of one project hears of another one: %s", s)
	}
	one.until("the last")
	k.do(ada, "PATCH", "/v1/contexts/"+own, `{"title":"CANARY","labels":{"project":"/secret"}}`)
	k.do(ada, "POST", "/v1/contexts/"+own+"/branches/main/messages", `{"role":"user","content":"CANARY"}`)
	for {
		_, b, err := one.Read(t.Context())
		if err != nil {
			if websocket.CloseStatus(err) != 4002 {
				t.Error("a context that left the project:", err)
			}
			break
		}
		if strings.Contains(string(b), "CANARY") {
			t.Errorf("a follower hears of a context that left the project: %s", b)
			break
		}
	}
}

// followed is a WebSocket of events.
type followed struct {
	*websocket.Conn
	t *testing.T
}

func (k *kit) subprotocols(token string) *websocket.DialOptions {
	return &websocket.DialOptions{Subprotocols: []string{"ctxdir.v1", "ctxdir.token." + token}}
}

func (k *kit) events(token, path string) followed {
	k.Helper()
	conn, _, err := websocket.Dial(k.Context(), k.url+path, k.subprotocols(token)) //nolint:bodyclose // the connection has it
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = conn.CloseNow() })
	f := followed{conn, k.T}
	f.until(`"ready"`)
	return f
}

// until returns what comes up to a text.
func (f followed) until(text string) (all string) {
	f.t.Helper()
	for !strings.Contains(all, text) {
		_, b, err := f.Read(context.WithoutCancel(f.t.Context()))
		if err != nil {
			f.t.Fatal(err, all)
		}
		all += string(b) + "\n"
	}
	return all
}
