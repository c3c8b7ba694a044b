package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server/meter"
	"github.com/google/uuid"
)

// TestUsage: what the server keeps of requests in local mode is added up by day in UTC.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"CTXSERVER_DIR": dir}
	_, stdout, stderr := do(t, env, "--json", "user", "add", "ada")
	var ada struct{ ID uuid.UUID }
	if err := json.Unmarshal([]byte(stdout), &ada); err != nil {
		t.Fatal(err, stderr)
	}
	log, night := meter.Files(dir), time.FixedZone("", 2*3600)
	for _, rows := range [][]meter.Row{
		meter.New(time.Date(2027, 3, 15, 1, 0, 0, 0, night), 1200, 40), // the 14th in UTC
		meter.New(time.Date(2027, 3, 15, 9, 0, 0, 0, night), 70, 7),
		meter.New(time.Date(2027, 3, 15, 10, 0, 0, 0, night), 30, 3),
	} {
		if err := log.Add(t.Context(), ada.ID, rows); err != nil {
			t.Fatal(err)
		}
	}
	const table = `DAY           REQUESTS    PROMPT TOKENS    ANSWER TOKENS
2027-03-14           1            1,200               40
2027-03-15           2              100               10
`
	if _, stdout, stderr := do(t, env, "user", "usage", "ada"); stdout != table {
		t.Errorf("%s%s", stdout, stderr)
	}
	const records = `{"record":"usage","user":"ada","date":"2027-03-14","requests":1,"prompt_tokens":1200,"completion_tokens":40}
{"record":"usage","user":"ada","date":"2027-03-15","requests":2,"prompt_tokens":100,"completion_tokens":10}
`
	if _, stdout, stderr := do(t, env, "--json", "user", "usage", "ada"); stdout != records {
		t.Errorf("%s%s", stdout, stderr)
	}
}
