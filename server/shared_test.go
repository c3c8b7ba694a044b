package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// inProject makes a context of a project.
func (k *kit) inProject(token, project, title string) (id string) {
	k.Helper()
	id = k.create(token, title, title)
	if a := k.do(token, "PATCH", "/v1/contexts/"+id, `{"labels":{"project":"`+project+`"}}`); a.status != http.StatusOK {
		k.Fatalf("label: %d %s", a.status, a.body)
	}
	return id
}

// TestShare shares a project with another user, who sees it and nothing else, and changes nothing.
func TestShare(t *testing.T) { each(t, testShare) }

func testShare(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{Audit: server.AuditAll})
	ada, bob := k.tokens["ada"], k.tokens["bob"]
	secret := k.fill(ada, "/secret")
	harbour, berths := k.inProject(ada, "/harbour", "the plan"), k.inProject(ada, "/berths", "the berths")
	const at1 = "/shared/ada"
	before := k.do(bob, "GET", at1+"/v1/contexts", "")
	if none := k.do(bob, "GET", "/shared/nobody/v1/contexts", ""); before.status != 404 || before.body != none.body {
		t.Errorf("what is not shared: %d %s, instead of %s", before.status, before.body, none.body)
	}
	must(t, k.users.Share(t.Context(), "ada", "/harbour", "bob"))
	must(t, k.users.Share(t.Context(), "ada", "/harbour", "bob"))
	a := k.do(bob, "GET", at1+"/v1/contexts", "")
	if a.status != 200 || !strings.Contains(a.body, harbour) || strings.Contains(a.body, berths) || strings.Contains(a.body, secret.id) {
		t.Errorf("what is shared: %d %s", a.status, a.body)
	}
	must(t, k.users.Share(t.Context(), "ada", "/berths", "bob"))
	if a := k.do(bob, "GET", at1+"/v1/contexts", ""); !strings.Contains(a.body, harbour) || !strings.Contains(a.body, berths) {
		t.Errorf("two projects: %s", a.body)
	}
	if a := k.do(bob, "GET", "/v1/store", ""); !strings.Contains(a.body, `"shared":[{"owner":"ada","projects":["/harbour","/berths"]}]`) {
		t.Errorf("the store does not say what is shared: %s", a.body)
	}
	if a := k.do(bob, "GET", at1+"/v1/store", ""); !strings.Contains(a.body, `"read_only":true`) || strings.Contains(a.body, "shared") {
		t.Errorf("the store of ada, for bob: %s", a.body)
	}
	k.visible = []uuid.UUID{uuid.MustParse(harbour), uuid.MustParse(berths)}
	k.told(bob, at1, secret)
	k.writesNothing(bob, at1, harbour)
	k.pulls(bob, at1, harbour)
	if a := k.do(bob, "GET", at1+"/c/"+harbour, ""); a.status != 200 || !strings.Contains(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("the page: %d", a.status)
	}
	if a := k.do("", "GET", at1+"/v1/contexts", ""); a.status != 401 {
		t.Errorf("without a token: %d", a.status)
	}
	for what, token := range map[string]string{
		"a token of one project": k.token("bob", users.TokenOptions{Project: "/harbour"}), "the owner": ada,
	} {
		if a := k.do(token, "GET", at1+"/v1/contexts", ""); a.status != 404 {
			t.Errorf("%s: %d", what, a.status)
		}
	}
	for _, path := range []string{
		"/shared/ada/shared/ada/v1/contexts", "/shared/ada/../v1/contexts", "/shared/ada%2fv1/contexts", "/shared//v1/contexts", "/shared/",
	} {
		if a := k.do(bob, "GET", path, ""); a.status == 200 {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if log := k.log.String(); strings.Contains(log, `"ada`) || strings.Contains(log, "/ada") || strings.Contains(log, "harbour") {
		t.Errorf("the log: %s", log)
	}
}

// writesNothing sends requests to each operation that writes, to a context that the token only reads.
func (k *kit) writesNothing(token, at, id string) {
	k.Helper()
	state := func() string {
		all := k.do(k.tokens["ada"], "GET", "/v1/contexts/"+id, "").body + k.do(k.tokens["ada"], "GET", "/v1/contexts/"+id+"/log", "").body
		return all + k.do(k.tokens["ada"], "GET", "/v1/trash", "").body + k.do(k.tokens["ada"], "GET", "/v1/contexts?kind=*", "").body
	}
	before, tried := state(), 0
	for _, r := range k.requests(hidden{id: id, message: id, sum: strings.Repeat("a", 64), item: id, moment: id, external: "x"}) {
		if r[0] == http.MethodGet {
			continue
		}
		a := k.do(token, r[0], at+r[1], r[2])
		reads := strings.HasSuffix(r[1], "/assemble") || strings.Contains(r[1], "/export")
		refused := a.status == http.StatusForbidden || a.status == http.StatusNotFound // artifacts are of no project
		if tried++; !reads && !refused {
			k.Errorf("%s %s of a share: %d %s", r[0], r[1], a.status, a.body)
		}
	}
	if after := state(); after != before || tried < 20 {
		k.Errorf("%d requests to a share changed something:\n%s\n%s", tried, before, after)
	}
}

// pulls reads a shared context as a store that syncs.
func (k *kit) pulls(token, at, id string) {
	k.Helper()
	caller := replica.NewHTTP(k.url+at+"/v1/replica", token)
	defer caller.Close()
	p := replica.NewClient(caller, uuid.Nil)
	states, err := p.Contexts(k.Context(), nil)
	must(k.T, err)
	heads, err := p.Heads(k.Context(), []replica.HeadRequest{{ID: uuid.MustParse(id)}})
	must(k.T, err)
	if len(states) != 2 || heads[0].Err != nil || heads[0].Meta.Title != "the plan" {
		k.Errorf("a peer reads %+v %+v", states, heads)
	}
}

// TestUnshare ends shares in each way that there is.
func TestUnshare(t *testing.T) { each(t, testUnshare) }

func testUnshare(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	k.server.RecheckEvery(time.Millisecond)
	ada, bob := k.tokens["ada"], k.tokens["bob"]
	id := k.inProject(ada, "/harbour", "the plan")
	sees := func(want int, when string) {
		t.Helper()
		if a := k.do(bob, "GET", "/shared/ada/v1/contexts/"+id, ""); a.status != want {
			t.Errorf("%s: %d %s", when, a.status, a.body)
		}
	}
	share := func() { must(t, k.users.Share(t.Context(), "ada", "/harbour", "bob")) }
	share()
	sees(200, "shared")
	f := k.events(bob, "/shared/ada/v1/events")
	must(t, k.users.Unshare(t.Context(), "ada", "/harbour", "bob"))
	sees(404, "no longer shared")
	if _, _, err := f.Read(t.Context()); websocket.CloseStatus(err) == -1 {
		t.Error("a follower goes on:", err)
	}
	share()
	k.do(ada, "PATCH", "/v1/contexts/"+id, `{"labels":{"project":"/other"}}`)
	sees(404, "moved to another project")
	k.do(ada, "PATCH", "/v1/contexts/"+id, `{"labels":{"project":"/harbour"}}`)
	sees(200, "moved back")
	_, err := k.users.Remove(t.Context(), "ada")
	must(t, err)
	sees(404, "the owner was removed")
	_, err = k.users.Add(t.Context(), "ada")
	must(t, err)
	sees(404, "another user has the name")
	var store struct{ Shared []any }
	must(t, json.Unmarshal([]byte(k.do(bob, "GET", "/v1/store", "").body), &store))
	given, err := k.users.Given(t.Context(), "ada")
	must(t, err)
	if len(given) > 0 {
		t.Errorf("the new user shares %v", given)
	}
}
