package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/clients/go"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

const token = "0123456789abcdef0123456789abcdef"

// TestOperations compares the operations of the contract with those of the server.
func TestOperations(t *testing.T) {
	var described, served []string
	for path, item := range specification(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	for _, op := range api.Operations() {
		if strings.HasPrefix(op.Path, "/v1/") || op.Path == "/healthz" { // others are pages
			served = append(served, op.Method+" "+op.Path)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	for _, op := range served {
		if !slices.Contains(described, op) {
			t.Errorf("openapi.yaml does not have %s", op)
		}
	}
	for _, op := range described {
		if !slices.Contains(served, op) {
			t.Errorf("the server does not have %s", op)
		}
	}
}

func specification(t *testing.T) *openapi3.T {
	t.Helper()
	b, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// kit is a server, and a client all of whose requests and responses are compared with the contract.
type kit struct {
	*testing.T
	store *ctxdir.Store // nil if it is in a database
	url   string
	token string
	cut   func() // ends the WebSockets so far
	c     *client.ClientWithResponses
	wire  *wire
}

// newKit serves a store: with package api, or with the command that $CTXDIR_SERVER names, as the store of one of its users.
func newKit(t *testing.T, o api.Options) *kit {
	t.Helper()
	store, token, sockets := t.TempDir(), token, &sockets{}
	var h *httptest.Server
	if command := os.Getenv("CTXDIR_SERVER"); command != "" {
		var behind http.Handler
		store, token, behind = serverOfUsers(t, command)
		h = httptest.NewUnstartedServer(behind)
	}
	var s *ctxdir.Store
	if store != "" {
		var err error
		if s, err = ctxdir.Init(store); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
	}
	if h == nil {
		o.Token = token
		server, err := api.New(s, o)
		if err != nil {
			t.Fatal(err)
		}
		h = httptest.NewUnstartedServer(server)
		t.Cleanup(server.Close)
	}
	h.Config.ConnState = sockets.note
	h.Start()
	t.Cleanup(h.Close)
	doc := specification(t)
	doc.Servers = openapi3.Servers{{URL: h.URL}}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{T: t, store: s, url: h.URL, token: token, cut: sockets.cut, wire: &wire{t: t, router: router, seen: map[string]bool{}}}
	if k.c, err = client.Dial(h.URL+"/v1", token, client.WithHTTPClient(k.wire)); err != nil {
		t.Fatal(err)
	}
	return k
}

// sockets are the connections of the server that became WebSockets.
type sockets struct {
	mu  sync.Mutex
	all []net.Conn
}

func (s *sockets) note(conn net.Conn, state http.ConnState) {
	if state == http.StateHijacked {
		s.mu.Lock()
		s.all = append(s.all, conn)
		s.mu.Unlock()
	}
}

func (s *sockets) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.all {
		_ = conn.Close()
	}
	s.all = nil
}

// wire is an HTTP client that compares what it sends and receives with the contract.
type wire struct {
	t      *testing.T
	router routers.Router

	mu   sync.Mutex
	seen map[string]bool // operation and status
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.t.Helper()
	route, parameters, err := w.router.FindRoute(r)
	if err != nil {
		w.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		return nil, err
	}
	sent := &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route, Options: &openapi3filter.Options{
		IncludeResponseStatus: true,
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		SkipSettingDefaults:   true,
		ExcludeRequestBody:    true, // its members are compared by the server, which knows no others
	}}
	if err := openapi3filter.ValidateRequest(r.Context(), sent); err != nil {
		w.t.Errorf("request %s %s: %v", r.Method, r.URL, err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.validate(r.Context(), sent, resp, body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[route.Operation.OperationID] = true
	return resp, nil
}

// validate compares a response with the contract: of JSON Lines, each line.
func (w *wire) validate(ctx context.Context, sent *openapi3filter.RequestValidationInput, r *http.Response, body []byte) {
	w.t.Helper()
	bodies := [][]byte{body}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-ndjson") {
		bodies = bytes.Split(bytes.TrimSuffix(body, []byte{'\n'}), []byte{'\n'})
		if len(body) == 0 {
			return
		}
	}
	for _, b := range bodies {
		got := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: sent, Status: r.StatusCode, Header: r.Header, Options: sent.Options,
		}
		got.SetBodyBytes(b)
		if err := openapi3filter.ValidateResponse(ctx, got); err != nil {
			w.t.Errorf("response of %s %s: %v\n%s", r.Request.Method, r.Request.URL, err, b)
		}
	}
}

func init() {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.JSONBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/merge-patch+json", openapi3filter.JSONBodyDecoder)
	for _, media := range []string{"text/html", "text/markdown"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.RegisteredBodyDecoder("text/plain"))
	}
}
