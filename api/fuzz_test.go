package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/google/uuid"
)

// FuzzRequests sends each operation arbitrary names in its path, an arbitrary query, headers and body. Whatever a
// request says is the client's fault: no answer is an internal error, each refusal is a problem, and the context that
// was there before can be read afterwards.
func FuzzRequests(f *testing.F) {
	s, err := ctxdir.Init(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	server, err := api.New(s, api.Options{Token: token})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(server.Close)
	patterns := api.Patterns()
	const id = "01900000-0000-7000-8000-00000000000a"
	c, err := s.Create(f.Context(), ctxdir.Metadata{ID: uuid.MustParse(id), Title: "there before"})
	if err != nil {
		f.Fatal(err)
	}
	defer c.Close()
	said := ctxdir.Draft{ID: uuid.MustParse(id), Body: []byte(`{"role":"user","content":"the harbour"}`)}
	if _, err := c.Active().Append(f.Context(), said); err != nil {
		f.Fatal(err)
	}
	seeds := []struct{ name, query, header, body string }{
		{"main", "", "", ""},
		{id, "from=0&to=3&content=full", "bytes=0-4", `{"role":"user","content":"a"}` + "\n" + `{"role":"user","content":"b"}`},
		{"../../etc/passwd", "cursor=AAAA&limit=5&sort=size", `"1-2"`, `{"title":"t","labels":{"a":"b"},"if_sequence":1}`},
		{"\x00\u202e", "q=harbour&since=2026-01-02T15:04:05Z&label=a=b", "W/\"x\"",
			`{"changes":[{"op":"append","branch":"main","messages":[{"role":"user"}]}]}`},
		{strings.Repeat("x", 300), "regex=(a*)*b&ignore_case=true", "bytes=9-,-3",
			`{"query":"harbour","max_tokens":100,"pinned":["` + id + `"]}`},
		{"alt", "by=day&time_zone=Asia/Tokyo", "", `{"name":"alt","at":1,"from":"main","type":"decision","content":"x"}`},
		{"0", "last=9223372036854775807&before=-1&around=" + id, "", `[[[[[[[[` + strings.Repeat("[", 10_000)},
	}
	for op := range patterns {
		for _, seed := range seeds {
			f.Add(uint8(op), true, seed.name, seed.query, seed.header, []byte(seed.body))
			f.Add(uint8(op), true, seed.name, "", "", []byte(seed.body)) // some parameters are those of other operations
			f.Add(uint8(op), false, seed.name, seed.query, seed.header, []byte(seed.body))
		}
	}
	f.Fuzz(func(t *testing.T, op uint8, known bool, name, query, header string, body []byte) {
		method, path, _ := strings.Cut(patterns[int(op)%len(patterns)], " ")
		path = strings.TrimSuffix(path, "{$}")
		switch {
		case method == http.MethodDelete: // of what is not there
			path, name = strings.Replace(path, "{context}", "none", 1), "none"+name
		case known:
			path = strings.NewReplacer("{context}", id, "{branch}", "main", "{id}", id).Replace(path)
		}
		for {
			before, rest, ok := strings.Cut(path, "{")
			if !ok {
				break
			}
			_, after, _ := strings.Cut(rest, "}")
			path = before + url.PathEscape(name) + after
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/", strings.NewReader(string(body)))
		r.URL = &url.URL{Path: path, RawQuery: query}
		if unescaped, err := url.PathUnescape(path); err == nil {
			r.URL.Path, r.URL.RawPath = unescaped, path
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		for _, h := range []string{"Range", "If-Match", "If-None-Match", "Idempotency-Key", "Accept-Encoding"} {
			r.Header.Set(h, header)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %q?%q: %d %s", method, path, query, w.Code, w.Body)
		}
		if p := (api.Problem{}); w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Status != w.Code || p.Code == "") {
			t.Errorf("%s %q?%q: %d is no problem: %.200s", method, path, query, w.Code, w.Body)
		}
		err := s.Use(t.Context(), c.ID(), func(c *ctxdir.Context) error {
			m, err := c.Active().Message(t.Context(), said.ID)
			if err == nil {
				err = m.Unavailable
			}
			return err
		})
		if err != nil {
			t.Errorf("%s %q?%q: the message that was there: %v", method, path, query, err)
		}
	})
}
