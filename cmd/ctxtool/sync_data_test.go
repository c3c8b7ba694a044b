package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSyncHistories: all conversations of the test data go over a pipe to another store, both change, and both show the same in
// the end.
func TestSyncHistories(t *testing.T) {
	data := os.Getenv("CTXDIR_TEST_DATA")
	if data == "" || testing.Short() {
		t.Skip("CTXDIR_TEST_DATA does not name a folder of histories, or the test would take too long")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "shell")
	if err := os.WriteFile(program, []byte(shell), 0o700); err != nil {
		t.Fatal(err)
	}
	here, there := &inProcess{store: filepath.Join(dir, "here"), ssh: program}, &inProcess{store: filepath.Join(dir, "there")}
	run := func(in *inProcess, args ...string) string {
		t.Helper()
		code := in.run(t.Context(), "", append([]string{"--json"}, args...)...)
		if code != 0 && args[0] != "import" && args[0] != "export" { // some histories are damaged
			t.Fatalf("%v: %d: %s", args, code, in.stderr.String())
		}
		return in.stdout.String()
	}
	sync := func() (s syncSummary) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(run(here, "sync", "--to", "ssh://example.org"+there.store)), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	run(here, "import", data)
	first := sync()
	var contexts []string
	for line := range strings.Lines(run(here, "ls")) {
		var c struct{ Record, ID string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Record == "context" {
			contexts = append(contexts, c.ID)
		}
	}
	if a, b := listed(t, run(here, "ls")), listed(t, run(there, "ls")); !cmp.Equal(a, b) {
		t.Errorf("after the first copy: %s", cmp.Diff(a, b))
	}
	if len(contexts) == 0 || first.Contexts < len(contexts) {
		t.Fatalf("%d contexts, the first time %+v", len(contexts), first)
	}
	for i, id := range contexts {
		switch i % 5 {
		case 0:
			run(here, "append", id, "Which way?")
		case 1:
			run(there, "append", id, "To the left.")
		case 2:
			run(here, "append", id, "Which way?")
			run(there, "append", id, "To the left.")
		case 3:
			run(there, "meta", id, "--title", "A walk", "--label", "seen=yes")
			run(here, "branch", "new", id, "another")
		}
	}
	if s := sync(); s.Contexts == 0 {
		t.Errorf("the second time: %+v", s)
	}
	if s := sync(); s.Contexts != 0 {
		t.Errorf("the third time: %+v", s)
	}
	for _, id := range contexts {
		for line := range strings.Lines(run(here, "branch", "ls", id)) {
			var b struct{ Record, Name string }
			if err := json.Unmarshal([]byte(line), &b); err != nil {
				t.Fatal(err)
			}
			if b.Record != "branch" {
				continue
			}
			args := []string{"export", id, "--branch", b.Name}
			if a, b := run(here, args...), run(there, args...); a != b {
				t.Errorf("%v differ: %d and %d bytes", args, len(a), len(b))
			}
		}
	}
	t.Logf("%d contexts: %+v", len(contexts), first)
}

// listed are the records of ls, by ids. An envelope has the name of a branch, so its size may differ.
func listed(t *testing.T, out string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for line := range strings.Lines(out) {
		var c map[string]any
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		delete(c, "bytes")
		all[fmt.Sprint(c["id"])] = c
	}
	return all
}
