package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adk"
	"github.com/google/uuid"
)

func TestMain(m *testing.M) {
	if os.Args[len(os.Args)-1] == "answer" { // a process that the test kills
		main()
		return
	}
	os.Exit(m.Run())
}

// TestAgent: an agent that is killed at random moments answers each question once, a fork continues beside it, and
// "ctxtool watch" prints every event of it, in another process.
func TestAgent(t *testing.T) {
	const questions = 10
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "store")
	store, err := ctxdir.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	lines := watch(t, dir, func() {
		c, err := store.Create(ctx, ctxdir.Metadata{Kind: "probe"})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	if err := crash(dir, questions); err != nil {
		t.Fatal(err)
	}
	if err := explore(ctx, store, questions); err != nil {
		t.Fatal(err)
	}
	missing := map[uuid.UUID]bool{}
	for _, branch := range []string{"main", "by train", "on foot"} {
		sess, err := events(ctx, adk.NewSessionService(store).OnBranch(branch))
		if err != nil {
			t.Fatal(err)
		}
		for e := range sess.Events().All() {
			missing[uuid.NewSHA1(adk.ContextID(app, user, sessionID), []byte(e.ID))] = true
		}
	}
	for len(missing) > 0 {
		line, ok := <-lines
		if !ok {
			t.Fatalf("the watcher ended; %d messages are missing", len(missing))
		}
		if line.Event == "appended" {
			delete(missing, line.ID)
		}
	}
	for f, err := range store.Check(ctx, ctxdir.CheckOptions{All: true, ReadData: true}) {
		t.Errorf("%+v, %v", f, err)
	}
}

type line struct {
	Event string
	ID    uuid.UUID
}

// watch starts "ctxtool watch" and returns what it prints. It calls probe until the first line: then it follows.
func watch(t *testing.T, dir string, probe func()) <-chan line {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "ctxtool")
	build := exec.Command("go", "build", "-o", tool, "./cmd/ctxtool")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, tool, "--store", dir, "--json", "watch")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = c.Wait() })
	lines, follows := make(chan line, 10_000), make(chan struct{})
	go read(out, lines, follows)
	for {
		probe()
		select {
		case <-follows:
			return lines
		default:
		}
	}
}

// read sends the lines that the watcher prints. It closes follows at the first one.
func read(out io.Reader, lines chan<- line, follows chan<- struct{}) {
	defer close(lines)
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, 1<<20)
	for first := true; scan.Scan(); first = false {
		if first {
			close(follows)
		}
		var l line
		if json.Unmarshal(scan.Bytes(), &l) == nil {
			lines <- l
		}
	}
}
