package api_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/histories"
	"github.com/ctxdir/ctxdir/importer"
)

func TestStateOf(t *testing.T) {
	for _, c := range []struct {
		age                    time.Duration
		open, failed, answered bool
		want                   string
	}{
		{0, false, false, false, "works"},
		{59 * time.Second, false, false, true, "works"},
		{time.Minute, false, false, true, "waits"},
		{29 * time.Minute, false, false, true, "waits"},
		{30 * time.Minute, false, false, true, ""},
		{time.Minute, false, false, false, ""}, // a prompt without an answer: the agent is gone
		{9 * time.Minute, true, false, false, "works"},
		{10 * time.Minute, true, false, false, "silent"},
		{59 * time.Minute, true, false, true, "silent"},
		{time.Hour, true, false, false, ""},
		{time.Minute, false, true, false, "silent"},
		{30 * time.Minute, false, true, false, ""},
	} {
		if got := api.StateOf(c.age, c.open, c.failed, c.answered); got != c.want {
			t.Errorf("%v old, open %v, failed %v, answered %v: %q, want %q", c.age, c.open, c.failed, c.answered, got, c.want)
		}
	}
}

func TestLiveFailed(t *testing.T) {
	const (
		calls  = `{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"Bash","input":{"command":"make lamp"}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"no rule","is_error":%t}]}`
	)
	failing := []string{fmt.Sprintf(calls, 1), fmt.Sprintf(result, 1, true)}
	for name, c := range map[string]struct {
		then []string
		want bool
	}{
		"the newest call failed":   {nil, true},
		"a later call succeeded":   {[]string{fmt.Sprintf(calls, 2), fmt.Sprintf(result, 2, false)}, false},
		"a later call is open":     {[]string{fmt.Sprintf(calls, 2)}, false},
		"the agent said something": {[]string{`{"role":"assistant","content":"Well."}`}, false},
		"a person said something":  {[]string{`{"role":"user","content":"Go on."}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, api.Options{})
			id := k.context(1)
			for _, body := range slices.Concat(failing, c.then) {
				k.appendBody(id, body)
			}
			var live struct {
				Contexts []struct {
					Failed *struct{ Name, Summary string } `json:"failed"`
				} `json:"contexts"`
			}
			got := k.do("GET", "/v1/live", "")
			if err := json.Unmarshal([]byte(got.body), &live); err != nil || len(live.Contexts) != 1 {
				t.Fatalf("%s %v", got.body, err)
			}
			switch failed := live.Contexts[0].Failed; {
			case (failed != nil) != c.want:
				t.Errorf("failed is %+v, want one: %v", failed, c.want)
			case failed != nil && (failed.Name != "Bash" || failed.Summary != "make lamp"):
				t.Errorf("failed is %+v", failed)
			}
		})
	}
}

func TestSession(t *testing.T) {
	k := newKit(t, api.Options{})
	path := filepath.Join(t.TempDir(), "session.jsonl")
	record := `{"type":"user","uuid":"a0000000-0000-4000-8000-000000000001","parentUuid":null,` +
		`"sessionId":"a0000000-0000-4000-8000-0000000000ff","timestamp":"2025-01-02T03:04:05Z",` +
		`"message":{"role":"user","content":"Light the lamp"}}` + "\n"
	if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for r, err := range importer.Import(t.Context(), histories.Into(k.store), path, importer.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		got := k.do("GET", "/v1/contexts/"+r.Context.String(), "")
		if !strings.Contains(got.body, `"session":"a0000000-0000-4000-8000-0000000000ff"`) {
			t.Errorf("the session is missing: %s", got.body)
		}
	}
	if got := k.do("GET", "/v1/contexts/"+k.context(1), ""); strings.Contains(got.body, `"session"`) {
		t.Errorf("a context that was not imported has a session: %s", got.body)
	}
}
