package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// gone is a stdout without a reader.
type gone struct{}

func (gone) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "stdout", Err: syscall.EPIPE}
}

func TestReaderGone(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	if code := p.run(t.Context(), "{\"a\":1}\n", "append", id, "--jsonl"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	tests := []struct {
		args  []string
		stdin string
		want  int
	}{
		{[]string{"ls"}, "", exitOK},
		{[]string{"--json", "show", id}, "", exitOK},
		{[]string{"show", id}, "", exitOK},
		{[]string{"export", id}, "", exitOK},
		{[]string{"append", id, "--jsonl"}, "{\"a\":2}\n", exitFailed}, // nobody learns the rest is not stored
	}
	for _, test := range tests {
		var stderr strings.Builder
		code := run(t.Context(), test.args, strings.NewReader(test.stdin), gone{}, &stderr, p.env)
		if code != test.want || (code == exitOK) != (stderr.Len() == 0) {
			t.Errorf("%v: %d, stderr %q; wanted %d", test.args, code, stderr.String(), test.want)
		}
	}
}

// TestBrokenPipe is TestReaderGone with a process, which the signal would end.
func TestBrokenPipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a write to a pipe that nobody reads sends no signal there")
	}
	p := newInProcess(t)
	id := p.new(t)
	if code := p.run(t.Context(), strings.Repeat("{\"a\":1}\n", 2000), "append", id, "--jsonl"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	for _, args := range [][]string{{"show", id}, {"--json", "show", id}, {"ls"}, {"export", id}, {"du"}, {"tree", id}, {"man"}, {"--help"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd := exec.Command("ctxtool", args...)
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr, cmd.Env = w, &stderr, append(os.Environ(), "CTXDIR_STORE="+p.store)
		if err := cmd.Run(); err != nil || stderr.Len() > 0 {
			t.Errorf("%v: %v, %q", args, err, stderr.String())
		}
		w.Close()
	}
}

func TestInterrupted(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	endless, w := io.Pipe()
	defer w.Close()
	for _, args := range [][]string{
		{"show", id}, {"ls"}, {"append", id, "text"}, {"append", id}, {"append", id, "--jsonl"}, {"branch", "new", id, "b"}, {"rm", id},
		{"import", t.TempDir() + "/none"},
	} {
		var stdout, stderr strings.Builder
		if code := run(stopped, args, endless, &stdout, &stderr, p.env); code != exitInterrupted {
			t.Errorf("%v: %d, %s", args, code, stderr.String())
		}
	}
	if code := p.run(t.Context(), "", "--json", "show", id); code != 0 || p.stdout.Len() > 0 {
		t.Errorf("something was stored: %d, %s", code, p.stdout.String())
	}
}

// TestAppendAnswers waits for the id of each line before it writes the next one.
func TestAppendAnswers(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	done := make(chan int)
	var stderr strings.Builder
	go func() {
		done <- run(t.Context(), []string{"append", "--json", id, "--jsonl"}, stdin, stdout, &stderr, p.env)
		stdout.Close()
	}()
	answers := bufio.NewScanner(out)
	for i := range 20 {
		fmt.Fprintf(in, "{\"n\":%d}\n", i)
		if !answers.Scan() {
			t.Fatal("no answer")
		}
		var r appendedRecord
		if err := json.Unmarshal(answers.Bytes(), &r); err != nil || r.Position != int64(i) {
			t.Fatalf("%s: %v", answers.Text(), err)
		}
	}
	in.Close()
	if code := <-done; code != 0 {
		t.Fatal(code, stderr.String())
	}
}

// TestAppendMany stores more than fits into a batch and checks every message.
func TestAppendMany(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	const n = 2500
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "{\"n\":%d, \"x\":1.0}\r\n\n", i)
	}
	if code := p.run(t.Context(), in.String(), "append", id, "--jsonl"); code != 0 || strings.Count(p.stdout.String(), "\n") != n {
		t.Fatal(code, p.stderr.String())
	}
	if code := p.run(t.Context(), "", "export", id); code != 0 {
		t.Fatal(code, p.stderr.String())
	}
	for i, line := range strings.Split(strings.TrimSpace(p.stdout.String()), "\n") {
		if want := fmt.Sprintf(`{"n":%d,"x":1.0}`, i); line != want {
			t.Fatalf("message %d is %s", i, line)
		}
	}
}

// TestErrorsAreOneLine makes usage errors: each is one line, with --json one object.
func TestErrorsAreOneLine(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	tests := []struct {
		want int
		args []string
	}{
		{2, []string{"nonsense"}},
		{2, []string{"branch"}},
		{2, []string{"branch", "nonsense"}},
		{2, []string{"show"}},
		{2, []string{"show", id, "more"}},
		{2, []string{"show", id, "--last", "x"}},
		{2, []string{"show", id, "--last", "-1"}},
		{2, []string{"show", id, "--range", "3"}},
		{2, []string{"show", id, "--range", "3:1"}},
		{2, []string{"show", id, "--range", "a:b"}},
		{2, []string{"show", id, "--range", "99999999999999999999:"}},
		{2, []string{"show", id, "--last", "1", "--range", "0:1"}},
		{2, []string{"show", ""}},
		{1, []string{"show", "../" + id}},
		{1, []string{"show", "/etc/passwd"}},
		{1, []string{"show", "a\x00b"}},
		{1, []string{"show", "\xff"}},
		{1, []string{"show", "00000000-0000-4000-8000-000000000000"}},
		{1, []string{"show", id, "--branch", "none"}},
		{2, []string{"ls", "--sort", "colour"}},
		{2, []string{"ls", "--limit", "0"}},
		{2, []string{"ls", "extra"}},
		{2, []string{"ls", "-q", "-v"}},
		{2, []string{"ls", "--lock-timeout", "-1s"}},
		{2, []string{"new", "--id", "x"}},
		{2, []string{"new", "--id", "00000000-0000-0000-0000-000000000000"}},
		{1, []string{"new", "--id", id}},
		{2, []string{"new", "--config", "k"}},
		{2, []string{"new", "--config", "a=1", "--config", "a.b=2"}},
		{2, []string{"new", "--title", "\xff"}},
		{1, []string{"new", "--system-prompt", "/does/not/exist"}},
		{1, []string{"new", "--parent", "0000000"}},
		{2, []string{"append", id, "--envelope"}},
		{2, []string{"append", id, "--jsonl", "text"}},
		{2, []string{"append", id, "--jsonl", "--role", "user"}},
		{2, []string{"append", id, "--role", "", "text"}},
		{2, []string{"append", id, "--id", "1", "text"}},
		{2, []string{"append", id, "--expect-position", "-1", "text"}},
		{1, []string{"append", id, "--expect-position", "1", "text"}},
		{2, []string{"append", id}}, // nothing on stdin
		{1, []string{"append", id, "\xff"}},
		{1, []string{"append", id, "--max-message", "10", "too long a text"}},
		{2, []string{"branch", "new", id, ""}},
		{2, []string{"branch", "new", id, "\xff"}},
		{2, []string{"branch", "new", id, "a\x00b"}},
		{2, []string{"branch", "new", id, strings.Repeat("x", 249)}},
		{1, []string{"branch", "new", id, "MAIN"}},
		{1, []string{"branch", "fork", id, "f", "--at", "-1"}},
		{1, []string{"branch", "fork", id, "f", "--at", "message"}},
		{1, []string{"branch", "fork", id, "f", "--at", "1"}},
		{1, []string{"branch", "fork", id, "f", "--at", "00000000-0000-4000-8000-000000000000"}},
		{1, []string{"branch", "fork", id, "f", "--from", "none"}},
		{1, []string{"branch", "rm", id, "main"}},
		{1, []string{"branch", "rm", id, "main", "--dry-run"}},
		{2, []string{"branch", "rewind", id}},
		{2, []string{"branch", "rewind", id, "--to", "-1"}},
		{1, []string{"branch", "rewind", id, "--to", "1"}},
		{1, []string{"branch", "rewind", id, "--to", "1", "--dry-run"}},
		{2, []string{"meta", id, "--set", "lines=[]"}},
		{2, []string{"meta", id, "--set", "id=x"}},
		{2, []string{"meta", id, "--set", "branches.0=x"}},
		{2, []string{"meta", id, "--set", "a.b=x"}},
		{2, []string{"meta", id, "--set", "config..x=1"}},
		{2, []string{"meta", id, "--set", "config=1"}},
		{2, []string{"meta", id, "--set", "nothing"}},
		{2, []string{"export", id, "--format", "pdf"}},
		{1, []string{"export", id, "-o", "/does/not/exist"}},
		{2, []string{"import"}},
		{2, []string{"import", "--format", "x", "y"}},
		{1, []string{"import", "/does/not/exist"}},
		{2, []string{"rm"}},
		{1, []string{"rm", id, "00000000-0000-4000-8000-000000000000"}},
		{2, []string{"completion", "tcsh"}},
		{2, []string{"completion", "bash", "more"}},
		{2, []string{"--nonsense", "ls"}},
	}
	for _, test := range tests {
		if code := p.run(t.Context(), "", test.args...); code != test.want || code == 2 && len(test.args) > 1 && p.stderr.Len() == 0 {
			t.Errorf("%q: %d, wanted %d: %s", test.args, code, test.want, p.stderr.String())
		}
		code := p.run(t.Context(), "", append(test.args, "--json")...)
		var r errorRecord
		err := json.Unmarshal([]byte(p.stderr.String()[strings.LastIndex(strings.TrimSpace(p.stderr.String()), "\n")+1:]), &r)
		if code != test.want || err != nil || r.Code != code || r.Record != "error" || r.Error == "" {
			t.Errorf("%q --json: %d, wanted %d: %v: %s", test.args, code, test.want, err, p.stderr.String())
		}
	}
	if code := p.run(t.Context(), "", "branch", "ls", id, "--json"); code != 0 || strings.Count(p.stdout.String(), "\n") != 1 {
		t.Errorf("a refused command left something: %s", p.stdout.String())
	}
}
