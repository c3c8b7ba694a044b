package compress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/privacy"
)

// recorder is an endpoint on this machine that keeps every byte that it gets.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	keys     []string
	answer   func(n int, w http.ResponseWriter) // to the n-th request
}

func newRecorder(t *testing.T, answer func(n int, w http.ResponseWriter)) *recorder {
	t.Helper()
	r := &recorder{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.requests = append(r.requests, q.URL.String()+" "+fmt.Sprint(q.Header)+" "+string(body))
		r.keys = append(r.keys, q.Header.Get("Authorization"))
		n := len(r.requests)
		r.mu.Unlock()
		r.answer(n, w)
	}))
	t.Cleanup(r.Close)
	return r
}

func reply(text string) func(n int, w http.ResponseWriter) {
	return func(_ int, w http.ResponseWriter) {
		message := map[string]string{"role": "assistant", "content": text}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message}}})
	}
}

func (r *recorder) endpoint(waits *[]time.Duration) *compress.Endpoint {
	e := &compress.Endpoint{URL: r.URL + "/v1", Model: "m", Filter: privacy.NewFilter("harbour-lights")}
	e.Wait = func(_ context.Context, d time.Duration) error {
		if waits != nil {
			*waits = append(*waits, d)
		}
		return nil
	}
	return e
}

// TestNothingPrivateLeaves: of code, paths, addresses and names, nothing reaches the endpoint.
func TestNothingPrivateLeaves(t *testing.T) {
	r := newRecorder(t, reply("They chose one transaction."))
	canaries := []string{"canaryFunction", "canary_path", "harbour", "ada@example.com", "sk-canary", "48151623", "Lovelace", "build.canary"}
	texts := append([]string{
		"We met Lovelace at ada@example.com. The key sk-canary9 and 48151623 stay here.",
		"```go\nfunc canaryFunction() { return 48151623 }\n```\n" +
			"It is in /home/ada/canary_path/build.canary and in `canaryFunction()` of Harbour Lights.",
		"    canaryFunction(1)\nfunc canaryFunction() {\nThe harbour-lights project and harbourLights are one.",
	}, conversation...)
	summary, err := compress.Remote{Endpoint: r.endpoint(nil)}.Summary(t.Context(), texts, 60)
	if err != nil || summary != "They chose one transaction." {
		t.Fatalf("%q, %v", summary, err)
	}
	if len(r.requests) != 1 || !strings.HasPrefix(r.requests[0], "/v1/chat/completions") ||
		!strings.Contains(r.requests[0], "transaction for every row") {
		t.Fatalf("requests %q", r.requests)
	}
	for _, canary := range canaries {
		if strings.Contains(strings.ToLower(r.requests[0]), strings.ToLower(canary)) {
			t.Errorf("%q reached the endpoint: %s", canary, r.requests[0])
		}
	}
}

func TestNothingLeavesWithoutFilter(t *testing.T) {
	r := newRecorder(t, reply("x"))
	e := r.endpoint(nil)
	e.Filter = nil
	if _, err := e.Ask(t.Context(), "Summarise.", "text", 10); !errors.Is(err, privacy.ErrPrivate) || len(r.requests) > 0 {
		t.Errorf("%v, requests %q", err, r.requests)
	}
}

func TestAttempts(t *testing.T) {
	status := func(codes ...int) func(n int, w http.ResponseWriter) {
		return func(n int, w http.ResponseWriter) {
			if n > len(codes) {
				reply("fine")(n, w)
				return
			}
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(codes[n-1])
		}
	}
	for name, x := range map[string]struct {
		answer   func(n int, w http.ResponseWriter)
		requests int
		ok       bool
	}{
		"at once":          {status(), 1, true},
		"busy, then fine":  {status(429, 503), 3, true},
		"always busy":      {status(500, 500, 500, 500), compress.Attempts, false},
		"wrong key":        {status(401, 401), 1, false},
		"redirection":      {status(307, 307), 1, false},
		"no completion":    {func(_ int, w http.ResponseWriter) { fmt.Fprint(w, `{"choices":[]}`) }, 1, false},
		"an endless reply": {func(_ int, w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 2<<20)) }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, x.answer)
			var waits []time.Duration
			answer, err := r.endpoint(&waits).Ask(t.Context(), "Summarise.", "text", 10)
			if x.ok && (err != nil || answer != "fine") || !x.ok && !errors.Is(err, compress.ErrRemote) {
				t.Errorf("%q, %v", answer, err)
			}
			if len(r.requests) != x.requests || len(waits) != x.requests-1 {
				t.Errorf("%d requests, waits %v", len(r.requests), waits)
			}
			for _, d := range waits {
				if d > 10*time.Second {
					t.Errorf("it waits %v", d)
				}
			}
		})
	}
}

func TestKey(t *testing.T) {
	r := newRecorder(t, reply("fine"))
	t.Setenv(compress.DefaultKeyEnv, "secret-key")
	if _, err := r.endpoint(nil).Ask(t.Context(), "Summarise.", "text", 10); err != nil || r.keys[0] != "Bearer secret-key" {
		t.Errorf("%v, keys %q", err, r.keys)
	}
	for _, url := range []string{"http://example.com/v1", "http://192.0.2.1", "https://me:pass@example.com", "file:///x", "nothing", ""} {
		e := r.endpoint(nil)
		e.URL, e.Client = url, &http.Client{Transport: refuse{}}
		_, err := e.Ask(t.Context(), "Summarise.", "text", 10)
		if !errors.Is(err, compress.ErrRemote) || strings.Contains(err.Error(), errSent.Error()) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// TestBounds: a long text is not sent, a long answer is cut, and a much longer one fails.
func TestBounds(t *testing.T) {
	r := newRecorder(t, reply(strings.Repeat("It is a long answer. ", 1000)+"\x1b[31m"))
	e := r.endpoint(nil)
	if _, err := e.Ask(t.Context(), "Summarise.", strings.Repeat("word ", compress.MaxRequest/5+2), 10); !errors.Is(err, compress.ErrRemote) {
		t.Errorf("a long text: %v", err)
	}
	if len(r.requests) > 0 {
		t.Error("it was sent")
	}
	long := []string{strings.Repeat("We keep the queue in memory. ", 20_000) + strings.Repeat("The same words come again here. ", 20_000)}
	summary, err := compress.Remote{Endpoint: e}.Summary(t.Context(), long, 50)
	if !errors.Is(err, compress.ErrRemote) || summary != "" {
		t.Errorf("an answer that is much too long: %v: %q", err, summary)
	}
	r.answer = reply(strings.Repeat("It is a long answer. ", 50) + "\x1b[31m")
	summary, err = compress.Remote{Endpoint: e}.Summary(t.Context(), long, 50)
	if n := compress.Estimate(summary); err != nil || n > 50 || n < 20 || strings.Contains(summary, "\x1b") {
		t.Errorf("%d tokens, %v: %q", n, err, summary)
	}
	r.answer = reply("# No sentence\n```\ncode\n```")
	if _, err = (compress.Remote{Endpoint: e}).Summary(t.Context(), long, 50); !errors.Is(err, compress.ErrRemote) {
		t.Errorf("an answer without a sentence: %v", err)
	}
}

var errSent = errors.New("a request was sent")

type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) { return nil, errSent }
