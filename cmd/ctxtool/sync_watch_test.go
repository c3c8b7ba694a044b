package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// shell is a program that runs the command of "ctxtool sync" here, in place of ssh.
const shell = `#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift 2
exec sh -c "$*"
`

// syncing is a process that keeps stores together.
type syncing struct {
	t     *testing.T
	lines *bufio.Scanner
}

// startSync starts the process, which ends with the test.
func startSync(t *testing.T, store string, args ...string) *syncing {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ctxtool", append([]string{"--store", store, "--json", "sync", "--watch"}, args...)...)
	program := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(program, []byte(shell), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Env, cmd.Stderr = append(os.Environ(), "CTXDIR_SSH="+program), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &syncing{t, bufio.NewScanner(out)}
}

// until reads records until one is of a kind.
func (s *syncing) until(record string) (r syncedRecord) {
	s.t.Helper()
	for s.lines.Scan() {
		if err := json.Unmarshal(s.lines.Bytes(), &r); err != nil {
			s.t.Fatalf("%v: %s", err, s.lines.Text())
		}
		if r.Record == record {
			return r
		}
	}
	s.t.Fatalf("the output ended: %v", s.lines.Err())
	return r
}

// TestSyncWatch: what is written on either side arrives on the other one, in a folder and on another machine.
func TestSyncWatch(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	here := newInProcess(t)
	id := here.new(t)
	there := filepath.Join(t.TempDir(), "there")
	for name, to := range map[string]string{"folder": there, "ssh": "ssh://example.org" + there} {
		t.Run(name, func(t *testing.T) {
			s := startSync(t, here.store, "--to", to)
			s.until("summary")
			for _, x := range []struct {
				store          string
				pushed, pulled int64
			}{{here.store, 1, 0}, {there, 0, 1}} {
				if out, err := exec.Command("ctxtool", "--store", x.store, "append", id, "Which way?").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if r := s.until("synced"); r.Pushed != x.pushed || r.Pulled != x.pulled || len(r.Diverged) > 0 {
					t.Errorf("%s: %+v, want %+v", to, r, x)
				}
			}
		})
	}
}
