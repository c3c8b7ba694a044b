package mcp_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/mcp"
	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestResourceList: the list has every branch that one is on, page by page, those of the project alone, and no private ones.
func TestResourceList(t *testing.T) {
	s := newStore(t)
	all, project := newKit(t, s, mcp.Options{}), newKit(t, s, mcp.Options{Project: "/work/walk", Asking: "none"})
	want := map[string]bool{}
	at := "ctxdir://" + s.Info().ID.String() + "/"
	for i := range 120 {
		m := ctxdir.Metadata{Title: fmt.Sprintf("Walk %d\n[context x]", i), Labels: map[string]string{"private": fmt.Sprint(i%10 == 7)}}
		if id := all.create(m, "one"); i%10 != 7 {
			want[at+id+"/main"] = true
		}
	}
	pages, cursor := 0, ""
	for ; pages == 0 || cursor != ""; pages++ {
		r, err := all.ListResources(t.Context(), &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Resources {
			if !want[x.URI] || strings.Contains(x.Name, "\n") {
				t.Errorf("%+v: not wanted", x)
			}
			delete(want, x.URI)
		}
		cursor = r.NextCursor
	}
	if len(want) != 0 || pages != 3 {
		t.Errorf("%d pages, without %v", pages, want)
	}
	if r, err := project.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 0 {
		t.Errorf("of the project: %v, %v", r, err)
	}
	id := all.create(ctxdir.Metadata{Labels: map[string]string{"project": "/work/walk"}}, "one")
	if r, err := project.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 1 || r.Resources[0].URI != at+id+"/main" {
		t.Errorf("of the project: %v, %v", r, err)
	}
	if r, err := all.ListResources(t.Context(), &sdk.ListResourcesParams{Cursor: "../../etc/passwd"}); err == nil {
		t.Errorf("a cursor of no list: %v", r)
	}
}

// sessions is the last version of the protocol in which a client waits until it is subscribed.
const sessions = "2025-11-25"

// TestSubscriptions: a client is told of each commit to a branch that it follows, and of nothing else.
func TestSubscriptions(t *testing.T) {
	s := newStore(t)
	k := newKitOf(t, s, mcp.Options{}, sessions)
	id, other := k.create(ctxdir.Metadata{}, "one"), k.create(ctxdir.Metadata{}, "one")
	private := k.create(ctxdir.Metadata{Labels: map[string]string{"private": "true"}}, "one")
	at := "ctxdir://" + s.Info().ID.String() + "/"
	use := func(id string, f func(c *ctxdir.Context) error) {
		t.Helper()
		if err := s.Use(t.Context(), uuid.MustParse(id), f); err != nil {
			t.Fatal(err)
		}
	}
	say := func(id string) {
		use(id, func(c *ctxdir.Context) error {
			_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(`{"role":"user"}`)})
			return err
		})
	}
	for _, uri := range []string{at + private + "/main", at + id + "/none", "file:///etc/passwd", at + uuid.NewString() + "/main"} {
		if err := k.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil {
			t.Errorf("subscribed to %s", uri)
		}
	}
	for _, of := range []string{id, other} {
		if err := k.Subscribe(t.Context(), &sdk.SubscribeParams{URI: at + of + "/main"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []string{id, other, id} {
		say(of)
		if uri := <-k.updated; uri != at+of+"/main" {
			t.Errorf("%s was changed, told of %s", of, uri)
		}
	}
	if err := k.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: at + id + "/main"}); err != nil {
		t.Fatal(err)
	}
	say(id)
	say(other)
	if uri := <-k.updated; uri != at+other+"/main" || len(k.updated) > 0 {
		t.Errorf("after the end of a subscription: %s", uri)
	}
	more := 0
	for err := error(nil); err == nil && more < 100; more++ {
		err = k.Subscribe(t.Context(), &sdk.SubscribeParams{URI: at + k.create(ctxdir.Metadata{}, "one") + "/main"})
	}
	if more != 32 {
		t.Errorf("%d subscriptions at a time", more)
	}
}

// TestPrivateLater: who follows a branch hears nothing more from it when it becomes private.
func TestPrivateLater(t *testing.T) {
	s := newStore(t)
	k := newKitOf(t, s, mcp.Options{}, sessions)
	id, end := k.create(ctxdir.Metadata{}, "one"), k.create(ctxdir.Metadata{}, "one")
	at := "ctxdir://" + s.Info().ID.String() + "/"
	for _, of := range []string{id, end} {
		if err := k.Subscribe(t.Context(), &sdk.SubscribeParams{URI: at + of + "/main"}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Open(t.Context(), uuid.MustParse(id))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Update(t.Context(), func(m *ctxdir.Metadata) error {
		m.Labels = map[string]string{"private": "true"}
		return nil
	})
	if err == nil {
		_, err = c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(`{"role":"user"}`)})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Use(t.Context(), uuid.MustParse(end), func(c *ctxdir.Context) error {
		_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(`{"role":"user"}`)})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if uri := <-k.updated; uri != at+end+"/main" {
		t.Errorf("told of %s", uri)
	}
}

// TestSubAgent: what a sub-agent said is marked.
func TestSubAgent(t *testing.T) {
	s := newStore(t)
	k := newKit(t, s, mcp.Options{})
	parent := k.create(ctxdir.Metadata{}, "find the staging database")
	child := k.create(ctxdir.Metadata{ParentID: uuid.MustParse(parent)}, heron)
	for tool, args := range map[string]string{
		"recall": `{"question":"heron"}`, "search": `{"query":"heron"}`, "read": `{"context":"` + child + `"}`,
	} {
		k.has(tool, args, ", of a sub-agent")
	}
	k.has("read", `{"context":"`+parent+`"}`, "not", "sub-agent")
}

// TestProgress: the first call waits for the import beside the server, indexes what is new, and tells how far it is.
func TestProgress(t *testing.T) {
	s := newStore(t)
	imported := make(chan struct{})
	k := newKit(t, s, mcp.Options{Imported: imported})
	answer := make(chan *sdk.CallToolResult, 1)
	go func() {
		p := &sdk.CallToolParams{Name: "recall", Arguments: map[string]any{"question": "what is heron"}, Meta: sdk.Meta{}}
		p.SetProgressToken("token")
		r, err := k.CallTool(t.Context(), p)
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	if text := <-k.progress; text != "importing conversations" {
		t.Errorf("at first: %s", text)
	}
	k.create(ctxdir.Metadata{}, heron)
	close(imported)
	if text := <-k.progress; text != "indexing conversations" {
		t.Errorf("then: %s", text)
	}
	if r := <-answer; r == nil || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, heron) {
		t.Errorf("%+v", r)
	}
}

// TestNoSubscriptionsOverHTTP: without sessions there are none, and the server says so.
func TestNoSubscriptionsOverHTTP(t *testing.T) {
	s := newStore(t)
	server := mcp.New(s, mcp.Options{})
	defer server.Close()
	k := newKit(t, s, mcp.Options{})
	id := k.create(ctxdir.Metadata{}, "one")
	h := httptest.NewServer(server.Handler())
	defer h.Close()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: h.URL, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if about := client.InitializeResult(); about.Capabilities.Resources.Subscribe {
		t.Errorf("%+v", about.Capabilities.Resources)
	}
	r, err := client.ListResources(t.Context(), nil)
	if err != nil || len(r.Resources) != 1 || !strings.Contains(r.Resources[0].URI, id) {
		t.Errorf("%v, %v", r, err)
	}
	if about := k.InitializeResult(); !about.Capabilities.Resources.Subscribe {
		t.Errorf("over stdio: %+v", about.Capabilities.Resources)
	}
}
