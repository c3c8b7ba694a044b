package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// liveRun is an import that follows, in this process.
type liveRun struct {
	t      *testing.T
	lines  *bufio.Scanner
	stop   context.CancelFunc
	code   chan int
	stderr strings.Builder
}

type liveRecord struct {
	Record, Path, Reason      string
	Contexts, Files, Failed   int
	Added, Messages, Problems int64
	Branches                  int
}

func startLiveImport(t *testing.T, p *inProcess, paths ...string) *liveRun {
	ctx, stop := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	l := &liveRun{t: t, lines: bufio.NewScanner(out), stop: stop, code: make(chan int, 1)}
	go func() {
		args := append([]string{"import", "--json", "--follow"}, paths...)
		l.code <- run(ctx, args, strings.NewReader(""), stdout, &l.stderr, p.env)
		stdout.Close()
	}()
	return l
}

// want reads the next record and compares it.
func (l *liveRun) want(want liveRecord) {
	l.t.Helper()
	if !l.lines.Scan() {
		l.t.Fatalf("the output ended: %v", l.lines.Err())
	}
	var got liveRecord
	if err := json.Unmarshal(l.lines.Bytes(), &got); err != nil {
		l.t.Fatalf("%v: %s", err, l.lines.Text())
	}
	if got.Path = filepath.Base(got.Path); want.Path == "" {
		got.Path = ""
	}
	if got != want {
		l.t.Fatalf("%s\nis %+v,\nwanted %+v", l.lines.Text(), got, want)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// claudeLine is a record of Claude Code that follows another one.
func claudeLine(session string, n int) string {
	follows := "null"
	if n > 0 {
		follows = fmt.Sprintf(`"b0000000-0000-4000-8000-%s%08d"`, session, n-1)
	}
	return fmt.Sprintf(
		`{"parentUuid":%s,"sessionId":"b0000000-0000-4000-8000-%s99999999","type":"user","uuid":"b0000000-0000-4000-8000-%s%08d",`+
			`"timestamp":"2026-03-01T10:00:%02dZ","message":{"role":"user","content":"Message %d"}}`+"\n",
		follows, session, session, n, n%60, n)
}

// TestImportFollows: an import that follows stores what tools write, as they write it.
func TestImportFollows(t *testing.T) {
	p := newInProcess(t)
	dir := t.TempDir()
	session := filepath.Join(dir, "project", "session.jsonl")
	appendTo(t, session, claudeLine("0001", 0)+claudeLine("0001", 1))
	appendTo(t, filepath.Join(dir, "settings.json"), `{"theme":"dark"}`)
	l := startLiveImport(t, p, dir)
	l.want(liveRecord{Record: "failed", Path: "settings.json", Reason: "not a history of a known format"})
	l.want(liveRecord{Record: "imported", Path: "session.jsonl", Added: 2, Messages: 2, Branches: 1})
	l.want(liveRecord{Record: "ready"})

	// The tool writes a line in two parts, and begins another one.
	line := claudeLine("0001", 2)
	appendTo(t, session, line[:30])
	appendTo(t, filepath.Join(dir, "new", "folder", "other.jsonl"), claudeLine("0002", 0))
	l.want(liveRecord{Record: "imported", Path: "other.jsonl", Added: 1, Messages: 1, Branches: 1})
	appendTo(t, session, line[30:]+claudeLine("0001", 3)[:50])
	l.want(liveRecord{Record: "imported", Path: "session.jsonl", Added: 1, Messages: 3, Branches: 1})

	// A damaged line is reported once, and what follows it is imported.
	other := filepath.Join(dir, "new", "folder", "other.jsonl")
	appendTo(t, other, "{\"torn\n"+claudeLine("0002", 1))
	l.want(liveRecord{Record: "imported", Path: "other.jsonl", Added: 1, Messages: 2, Branches: 1, Problems: 1})
	appendTo(t, other, claudeLine("0002", 2))
	l.want(liveRecord{Record: "imported", Path: "other.jsonl", Added: 1, Messages: 3, Branches: 1, Problems: 1})

	// Another file takes the place of the session: its beginning is the same, then it differs.
	replacement := filepath.Join(t.TempDir(), "session.jsonl")
	appendTo(t, replacement, claudeLine("0001", 0)+
		strings.ReplaceAll(claudeLine("0001", 1), "Message", "Another message")+claudeLine("0001", 2))
	if err := os.Rename(replacement, session); err != nil {
		t.Fatal(err)
	}
	l.want(liveRecord{Record: "imported", Path: "session.jsonl", Added: 2, Messages: 3, Branches: 2})

	l.stop()
	l.want(liveRecord{Record: "summary", Files: 3, Contexts: 2, Added: 8, Messages: 8, Failed: 1, Problems: 1})
	if code := <-l.code; code != exitInterrupted || l.lines.Scan() {
		t.Errorf("exit status %d, then %s", code, l.lines.Text())
	}
	if got := l.stderr.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, `"line":2,"path"`) {
		t.Errorf("stderr: %s", got)
	}
}
