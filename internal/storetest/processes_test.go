package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestMain lets the test program be a writer or a reader of its own: see TestProcesses and TestReadingWhileArchiving.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CTXDIR_READER"); dir != "" {
		if err := readerProcess(dir, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	kit.Main(m)
}

// TestProcesses lets four processes append 1,000 messages each to one branch while a fifth, this one, reads in a
// loop: positions are contiguous, every read is a prefix of the next, and what was acknowledged is where it was
// said to be.
func TestProcesses(t *testing.T) {
	const writers, each = 4, 1000
	ctx := context.Background()
	dir := t.TempDir()
	s, err := kit.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(ctx, engine.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	type end struct {
		out []byte
		err error
	}
	ends := make(chan end, writers)
	for w := range writers {
		cmd := exec.Command(os.Args[0], c.ID().String(), fmt.Sprint("w", w), fmt.Sprint(each))
		cmd.Env = append(os.Environ(), "CTXDIR_WRITER="+dir)
		cmd.Stderr = os.Stderr
		go func() {
			out, err := cmd.Output()
			ends <- end{out, err}
		}()
	}
	acked := map[int64]string{}
	var before []uuid.UUID
	reads := 0
	for left := writers; left > 0; reads++ {
		select {
		case e := <-ends:
			left--
			if e.err != nil {
				t.Fatalf("a writer failed: %v", e.err)
			}
			for _, line := range strings.Fields(strings.ReplaceAll(string(e.out), " ", "@")) {
				at, id, _ := strings.Cut(line, "@")
				position, err := strconv.ParseInt(at, 10, 64)
				if err != nil || acked[position] != "" {
					t.Fatalf("position %s was given twice, or is none: %v", at, err)
				}
				acked[position] = id
			}
		default:
			if err := c.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
			before = readIDs(t, c, before)
		}
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	ids := readIDs(t, c, before)
	if len(ids) != writers*each || len(acked) != writers*each {
		t.Fatalf("%d messages, %d acknowledged, wanted %d", len(ids), len(acked), writers*each)
	}
	for at, id := range ids {
		if acked[int64(at)] != id.String() {
			t.Fatalf("position %d holds %s, %q was acknowledged", at, id, acked[int64(at)])
		}
	}
	t.Logf("%d reads meanwhile", reads)
}

// readIDs reads the branch and makes sure that it goes on from what an earlier read showed.
func readIDs(t *testing.T, c *engine.Context, before []uuid.UUID) []uuid.UUID {
	t.Helper()
	var ids []uuid.UUID
	for m, err := range c.Active().Messages(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Unavailable != nil || m.Edited || m.Position != int64(len(ids)) {
			t.Fatalf("position %d: %s at %d, unavailable %v, edited %v", len(ids), m.ID, m.Position, m.Unavailable, m.Edited)
		}
		if len(ids) < len(before) && before[len(ids)] != m.ID {
			t.Fatalf("position %d: %s, an earlier read had %s", len(ids), m.ID, before[len(ids)])
		}
		ids = append(ids, m.ID)
	}
	if len(ids) < len(before) {
		t.Fatalf("%d messages, an earlier read had %d", len(ids), len(before))
	}
	return ids
}

// TestPassedOnLockIsFresh: a goroutine that takes the lock for something else, as a seal does, and passes it on does
// not vouch for what the handle knows: another process may have written before.
func TestPassedOnLockIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c, dir := kit.NewContext(t)
		s := kit.Must[*engine.Store](t)(kit.Open(filepath.Dir(dir)))
		defer s.Close()
		other := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		defer other.Close()
		for i := range 20 {
			mine, others := fmt.Sprint("mine ", i), fmt.Sprint("other's ", i)
			kit.Must[*engine.Branch](t)(other.NewBranch(ctx, others))
			if err := c.Dir.Lock.Acquire(ctx); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				_, err := c.NewBranch(ctx, mine)
				done <- err
			}()
			synctest.Wait() // it waits for the lock
			if err := c.Dir.Lock.Release(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{mine, others} {
				if _, ok := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID())).Metadata().Branch(name); !ok {
					t.Fatalf("branch %q is gone", name)
				}
			}
		}
	})
}

// TestProcessesMigrate lets four processes open one legacy context at once, and append to it: there is one migrated
// context, with what all of them wrote.
func TestProcessesMigrate(t *testing.T) {
	const writers, each = 4, 25
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	id := uuid.MustParse(legacytest.ID(500))
	file := filepath.Join(dir, id.String()+".json")
	if err := os.WriteFile(file, []byte(legacytest.Whole(id.String())), 0o600); err != nil {
		t.Fatal(err)
	}
	ends := make(chan error, writers)
	for w := range writers {
		cmd := exec.Command(os.Args[0], id.String(), fmt.Sprint("w", w), fmt.Sprint(each))
		cmd.Env = append(os.Environ(), "CTXDIR_WRITER="+dir)
		cmd.Stderr = os.Stderr
		go func() { ends <- cmd.Run() }()
	}
	for range writers {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
	defer c.Close()
	if n := len(readIDs(t, c, []uuid.UUID{uuid.MustParse(legacytest.ID(1)), uuid.MustParse(legacytest.ID(2))})); n != 2+writers*each {
		t.Errorf("%d messages, wanted %d", n, 2+writers*each)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the legacy file has its old name still: %v", err)
	}
	if b := kit.Must[[]byte](t)(os.ReadFile(file + ".old")); string(b) != legacytest.Whole(id.String()) {
		t.Errorf("the legacy file changed")
	}
}
