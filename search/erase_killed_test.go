package search_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// variables of the process that TestEraseKilled kills.
const (
	eraseStore   = "SEARCH_TEST_ERASE_STORE"
	eraseContext = "SEARCH_TEST_ERASE_CONTEXT"
	eraseMessage = "SEARCH_TEST_ERASE_MESSAGE"
	eraseStop    = "SEARCH_TEST_ERASE_STOP" // where the process stops, and waits to be killed: before, after, or nowhere
)

// How far an erase came.
const (
	notLost  = "the store has the message"
	onlyLost = "the store has lost it, and the erase was not done"
	done     = "done"
)

// TestEraseKilled kills processes that erase messages. The next process finishes the forgetting before it answers: if the
// store has lost the message, no file of the index has its word, and no search finds it.
func TestEraseKilled(t *testing.T) {
	if os.Getenv(eraseStore) != "" {
		eraseAndWait(t)
		return
	}
	dir := t.TempDir()
	s := openStore(t, dir)
	kills := 100
	if testing.Short() {
		kills = 10
	}
	x := openIndex(t, s)
	c := secrets(t, s, x, kills+3)
	messages, err := c.Active().Range(t.Context(), 0, int64(kills)+3)
	check(t, err, x.Close(), c.Close())
	r := newRand(31)
	took := time.Duration(0)
	ends := map[string]int{}
	for i := range kills + 3 {
		stop := map[int]string{kills + 1: "before", kills + 2: "after"}[i]
		began, wait := startErase(t, dir, c.ID(), messages[i].ID, stop)
		if i > 0 && stop == "" {
			time.AfterFunc(time.Duration(r.Int64N(int64(took))), began.kill)
		}
		if wait(); i == 0 { // the first one ends, to see how long it takes
			took = max(began.duration(), time.Millisecond)
		}
		word, tail := secret(i)
		end := afterKill(t, dir, messages[i], c.ID(), word, tail)
		switch ends[end]++; end { // the kills gather around the loss
		case notLost:
			took += took / 4
		case done:
			took -= took / 5
		}
	}
	t.Logf("of %d erases, %v", kills+3, ends)
}

// eraseAndWait erases a message, in a process of its own.
func eraseAndWait(t *testing.T) {
	s, err := ctxdir.Open(os.Getenv(eraseStore))
	check(t, err)
	wait := func() {
		fmt.Println("stopped")
		select {}
	}
	_, err = s.Derived("search", func(ctx context.Context, contexts []uuid.UUID) error {
		stop := os.Getenv(eraseStop)
		if stop == "before" {
			wait()
		}
		err := search.Forget(ctx, s, contexts)
		if stop == "after" {
			wait()
		}
		return err
	})
	check(t, err)
	fmt.Println("begins")
	_, err = s.Erase(t.Context(), uuid.MustParse(os.Getenv(eraseContext)), []uuid.UUID{uuid.MustParse(os.Getenv(eraseMessage))},
		ctxdir.EraseOptions{Shared: true})
	check(t, err)
	fmt.Println("erased")
}

// erasing is a process that erases.
type erasing struct {
	cmd        *exec.Cmd
	begun, end time.Time
}

func (e *erasing) kill()                   { _ = e.cmd.Process.Kill() }
func (e *erasing) duration() time.Duration { return e.end.Sub(e.begun) }

// startErase returns when the process begins to erase. wait waits until it ended; it kills the process where it stops.
func startErase(t *testing.T, dir string, context, id uuid.UUID, stop string) (e *erasing, wait func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestEraseKilled$")
	cmd.Env = append(os.Environ(), eraseStore+"="+dir, eraseContext+"="+context.String(), eraseMessage+"="+id.String(), eraseStop+"="+stop)
	out, err := cmd.StdoutPipe()
	check(t, err, cmd.Start())
	lines := bufio.NewScanner(out)
	e = &erasing{cmd: cmd}
	for lines.Scan() && lines.Text() != "begins" {
	}
	e.begun = time.Now()
	return e, func() {
		for lines.Scan() {
			switch text := lines.Text(); {
			case text == "erased":
				e.end = time.Now()
			case text == "stopped":
				e.kill()
			case strings.Contains(text, "FAIL"):
				t.Errorf("the process failed: %s", text)
			}
		}
		_ = cmd.Wait()
	}
}

// afterKill is the next process. It returns what the killed one left, and finishes its erase.
func afterKill(t *testing.T, dir string, erased *ctxdir.Message, in uuid.UUID, word, tail string) string {
	t.Helper()
	s := openStore(t, dir)
	defer s.Close()
	lost := false
	look := func() {
		check(t, s.Use(t.Context(), in, func(c *ctxdir.Context) error {
			m, err := c.Active().Range(t.Context(), erased.Position, erased.Position+1)
			lost = err == nil && errors.Is(m[0].Unavailable, ctxdir.ErrErased)
			return err
		}))
	}
	look()
	if in := holds(t, s, tail); lost && in != "" {
		t.Errorf("%s has the word of a lost message", in)
	}
	x := openIndex(t, s)
	defer x.Close()
	hits := found(t, x, search.Query{Text: word})
	if lost == (hits > 0) {
		t.Errorf("%d hits, but lost is %v", hits, lost)
	}
	left := onlyLost
	if !lost {
		left = notLost
	} else if _, err := os.Stat(dir + "/" + in.String() + "/erasing.json"); err != nil {
		left = done
	}
	_, err := s.Erase(t.Context(), in, []uuid.UUID{erased.ID}, ctxdir.EraseOptions{Shared: true})
	check(t, err)
	if look(); !lost || holds(t, s, tail) != "" || found(t, x, search.Query{Text: word}) != 0 {
		t.Errorf("a second erase does not finish the first one")
	}
	if _, err := os.Stat(filepath.Join(dir, "derived", "erasing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the note is still there")
	}
	return left
}
