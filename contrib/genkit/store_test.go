package genkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/genkit"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/google/uuid"
)

type (
	snapshot = exp.SessionSnapshot[state]
	sessions = genkit.Store[state]
)

type state struct {
	Step int    `json:"step"`
	Die  string `json:"die,omitempty"` // ends the process when it is written
}

func (s state) MarshalJSON() ([]byte, error) {
	if s.Die != "" {
		os.Exit(0)
	}
	type plain state
	return json.Marshal(plain(s))
}

const each = 20 // turns of each process

// child is what the processes of the tests do: the first ones count, the third dies while it writes.
func child(store *ctxdir.Store, number int) error {
	ctx, s := context.Background(), genkit.NewStore[state](store)
	if _, err := os.Stat(filepath.Join(store.Info().Path, "die")); err == nil {
		_, err := s.SaveSnapshot(ctx, "x", func(*snapshot) (*snapshot, error) { return at("7", "", 1, state{Die: "now"}, "a"), nil })
		return errors.Join(errors.New("the process lives"), err)
	}
	for range each {
		if err := count(ctx, s); err != nil {
			return err
		}
		_, err := s.SaveSnapshot(ctx, "", func(*snapshot) (*snapshot, error) {
			return at("shared", "counter", number+2, state{}, fmt.Sprint("process ", number)), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count increments the counter of the session "shared".
func count(ctx context.Context, s *sessions) error {
	_, err := s.SaveSnapshot(ctx, "counter", func(was *snapshot) (*snapshot, error) {
		next := at("shared", "", 1, state{Step: 1})
		if was != nil {
			next.State.Custom.Step += was.State.Custom.Step
		}
		return next, nil
	})
	return err
}

func TestMain(m *testing.M) { adaptertest.Main(m, child) }

// at returns a snapshot with messages of the user and the model in turn.
func at(session, parent string, second int, custom state, texts ...string) *snapshot {
	t := time.Date(2026, 5, 1, 12, 0, second, 0, time.UTC)
	sn := &snapshot{SessionID: session, ParentID: parent, CreatedAt: t, UpdatedAt: t, State: &exp.SessionState[state]{Custom: custom}}
	for i, text := range texts {
		m := ai.NewUserTextMessage(text)
		if i%2 == 1 {
			m = ai.NewModelTextMessage(text)
		}
		sn.State.Messages = append(sn.State.Messages, m)
	}
	return sn
}

func save(t testing.TB, s exp.SnapshotWriter[state], id string, next *snapshot) *snapshot {
	t.Helper()
	saved, err := s.SaveSnapshot(t.Context(), id, func(*snapshot) (*snapshot, error) { return next, nil })
	if err != nil || saved == nil {
		t.Fatal(saved, err)
	}
	return saved
}

// expect compares the messages of a snapshot.
func expect(t *testing.T, sn *snapshot, err error, id string, texts ...string) {
	t.Helper()
	if sn == nil || err != nil {
		t.Fatalf("no snapshot %q: %v", id, err)
	}
	var got []string
	for _, m := range sn.State.Messages {
		got = append(got, m.Text())
	}
	if sn.SnapshotID != id || strings.Join(got, "|") != strings.Join(texts, "|") {
		t.Errorf("snapshot %q with %q, not %q with %q", sn.SnapshotID, got, id, texts)
	}
}

func get(t *testing.T, s *sessions, id string, texts ...string) {
	t.Helper()
	sn, err := s.GetSnapshot(t.Context(), id)
	expect(t, sn, err, id, texts...)
}

func newest(t *testing.T, s *sessions, session, id string, texts ...string) {
	t.Helper()
	sn, err := s.GetLatestSnapshot(t.Context(), session)
	expect(t, sn, err, id, texts...)
}

// branches returns the branches of a session as NAME:MESSAGES(SHARED), the active one with a star.
func branches(t *testing.T, store *ctxdir.Store, session string) (all string) {
	t.Helper()
	err := store.Use(t.Context(), genkit.ContextID(session), func(c *ctxdir.Context) error {
		infos, err := c.Branches(t.Context())
		for _, b := range infos {
			all += fmt.Sprintf(" %s:%d(%d)", b.Name, b.Messages, b.Shared)
			if b.Active {
				all += "*"
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(all)
}

func expectBranches(t *testing.T, store *ctxdir.Store, session, want string) {
	t.Helper()
	if got := branches(t, store, session); got != want {
		t.Errorf("branches %s, not %s", got, want)
	}
}

// TestRestart: an agent on another handle of the folder continues a session, without a fork, although the first one had a
// struct where the second one reads a map.
func TestRestart(t *testing.T) {
	store := adaptertest.Open(t, "")
	first := at("a/b", "", 1, state{Step: 1}, "hello <&>", "large "+strings.Repeat("text ", 1<<18))
	first.State.Messages = append(first.State.Messages, ai.NewMessage(ai.RoleTool, nil, ai.NewToolResponsePart(&ai.ToolResponse{
		Name: "look", Output: struct {
			Z int
			A string
		}{1, "b"},
	})))
	save(t, genkit.NewStore[state](store), "s1", first)
	again := adaptertest.Open(t, store.Info().Path)
	agent := exp.NewCustomAgent("guide", remember, exp.WithSessionStore(genkit.NewStore[state](again)))
	out, err := agent.RunText(t.Context(), "more", exp.WithSessionID[state]("a/b"))
	if err != nil || out.Message.Text() != "I remember 4 messages" {
		t.Fatal(out, err)
	}
	out, err = agent.RunText(t.Context(), "more", exp.WithSnapshotID[state](out.SnapshotID))
	if err != nil || out.Message.Text() != "I remember 6 messages" {
		t.Fatal(out, err)
	}
	expectBranches(t, store, "a/b", "main:10(0)*")
	if sn, err := genkit.NewStore[state](store).GetSnapshot(t.Context(), out.SnapshotID); err != nil || sn.State.Custom.Step != 3 {
		t.Error(sn, err)
	}
}

// TestFork: a snapshot whose messages do not continue its parent is a fork at the common beginning, and the latest one
// until a later one is made elsewhere.
func TestFork(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	save(t, s, "s1", at("x", "", 1, state{}, "a", "b"))
	save(t, s, "s2", at("x", "s1", 2, state{}, "a", "b", "c", "d"))
	expectBranches(t, store, "x", "main:6(0)*")
	save(t, s, "s3", at("x", "s1", 3, state{}, "a", "b", "C")) // from the first snapshot
	expectBranches(t, store, "x", "main:6(0) fork-2:5(3)*")
	save(t, s, "s4", at("x", "s2", 4, state{}, "a", "b", "c", "d", "e")) // on the first branch
	expectBranches(t, store, "x", "main:8(0)* fork-2:5(3)")
	save(t, s, "s5", at("x", "s4", 5, state{}, "summary", "e")) // a history that was compacted
	save(t, s, "s6", at("x", "s5", 6, state{}, "summary", "e", "f"))
	expectBranches(t, store, "x", "main:8(0) fork-2:5(3) fork-3:5(0)*")
	save(t, s, "s7", at("x", "s2", 7, state{}, "a")) // a shorter one
	expectBranches(t, store, "x", "main:8(0) fork-2:5(3) fork-3:5(0) fork-4:2(1)*")
	newest(t, s, "x", "s7", "a")
	save(t, s, "early", at("x", "s7", 0, state{}, "a", "z")) // it does not become the latest
	newest(t, s, "x", "s7", "a")
	for id, texts := range map[string]string{"s1": "ab", "s2": "abcd", "s3": "abC", "s4": "abcde", "early": "az"} {
		get(t, s, id, strings.Split(texts, "")...)
	}
	get(t, s, "s5", "summary", "e")
	get(t, s, "s6", "summary", "e", "f")
}

// TestRewrite: a snapshot that is finished later keeps its place, and gets its messages behind it, or on a fork.
func TestRewrite(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	pending := func(id, parent string, second int) {
		next := at("x", parent, second, state{})
		next.Status, next.State = exp.SnapshotStatusPending, nil
		save(t, s, id, next)
	}
	save(t, s, "s1", at("x", "", 1, state{}, "a"))
	pending("s2", "s1", 2)
	save(t, s, "s2", at("x", "s1", 2, state{}, "a", "b"))
	save(t, s, "s3", at("x", "s2", 3, state{}, "a", "b", "c"))
	expectBranches(t, store, "x", "main:6(0)*")
	pending("s4", "s3", 4)
	save(t, s, "s5", at("x", "s3", 5, state{}, "a", "b", "c", "e"))
	save(t, s, "s4", at("x", "s3", 4, state{}, "a", "b", "c", "d"))
	newest(t, s, "x", "s5", "a", "b", "c", "e")
	get(t, s, "s4", "a", "b", "c", "d")
	expectBranches(t, store, "x", "main:8(0) fork-2:8(6)*")
	save(t, s, "s5", at("x", "s3", 5, state{}, "a")) // loses messages
	get(t, s, "s5", "a")
	save(t, s, "s6", at("x", "s5", 6, state{}, "a", "f"))
	get(t, s, "s6", "a", "f")
	save(t, s, "s6", at("x", "s5", 6, state{}))
	save(t, s, "s7", at("x", "s6", 7, state{}, "g"))
	get(t, s, "s6")
	newest(t, s, "x", "s7", "g")
	get(t, s, "s3", "a", "b", "c")
}

// TestRewind: somebody rewinds a branch, or makes another branch the active one, and the session continues there.
func TestRewind(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	save(t, s, "s1", at("x", "", 1, state{}, "a"))
	save(t, s, "s2", at("x", "s1", 2, state{}, "a", "b"))
	p := at("x", "s2", 3, state{})
	p.State = nil
	save(t, s, "s3", p)
	save(t, s, "s3", at("x", "s2", 3, state{}, "a", "b", "c"))
	err := store.Use(t.Context(), genkit.ContextID("x"), func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(t.Context(), "retry", 2)
		return errors.Join(err, c.Active().Rewind(t.Context(), 5)) // of the last snapshot, without its message
	})
	if err != nil {
		t.Fatal(err)
	}
	newest(t, s, "x", "s3", "a", "b")
	save(t, s, "s4", at("x", "s3", 4, state{}, "a", "b", "c", "d")) // an agent that has not noticed
	newest(t, s, "x", "s4", "a", "b", "c", "d")
	expectBranches(t, store, "x", "main:8(0)* retry:2(2)")
	if err := store.Use(t.Context(), genkit.ContextID("x"), func(c *ctxdir.Context) error {
		return c.Switch(t.Context(), "retry")
	}); err != nil {
		t.Fatal(err)
	}
	newest(t, s, "x", "s1", "a")
	save(t, s, "s5", at("x", "s1", 5, state{}, "a", "B"))
	expectBranches(t, store, "x", "main:8(0) retry:4(2)*")
}

// TestSize: a session of n turns takes space for n turns, not for n states.
func TestSize(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	const turns, perTurn = 200, 1000
	var texts []string
	parent, size := "", 0
	for i := range turns {
		for _, text := range []string{strings.Repeat(fmt.Sprint("question ", i, " "), 100), strings.Repeat(fmt.Sprint("answer ", i, " "), 250)} {
			texts, size = append(texts, text), size+len(text)
		}
		parent = save(t, s, "", at("x", parent, i, state{Step: i}, texts...)).SnapshotID
	}
	newest(t, s, "x", parent, texts...)
	var stored int
	for _, id := range []uuid.UUID{genkit.ContextID("x"), ctxdir.ContextID(genkit.IndexKind, genkit.IndexKind)} {
		err := store.Use(t.Context(), id, func(c *ctxdir.Context) error {
			for m, err := range c.Active().Messages(t.Context(), 0, ctxdir.End) {
				if err != nil {
					return err
				}
				stored += len(m.Envelope())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d bytes of messages are stored in %d bytes: %d a turn beyond them", size, stored, (stored-size)/turns)
	if stored > size*3/2+turns*perTurn {
		t.Errorf("%d bytes of messages are stored in %d", size, stored)
	}
}

// TestProcesses: two processes and two goroutines rewrite one snapshot and add others to its session at once. No rewrite
// and no snapshot is lost.
func TestProcesses(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for range each {
				if err := count(t.Context(), s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adaptertest.Processes(t, store, 2)
	group.Wait()
	if sn, err := s.GetSnapshot(t.Context(), "counter"); err != nil || sn.State.Custom.Step != 4*each {
		t.Errorf("%v, %v", sn, err)
	}
	n := 0
	err := store.Use(t.Context(), ctxdir.ContextID(genkit.IndexKind, genkit.IndexKind), func(c *ctxdir.Context) error {
		for m, err := range c.Active().Messages(t.Context(), 0, ctxdir.End) {
			if err != nil {
				return err
			}
			if sn, err := s.GetSnapshot(t.Context(), m.OriginID); sn == nil || err != nil {
				t.Errorf("snapshot %s: %v, %v", m.OriginID, sn, err)
			}
			n++
		}
		return nil
	})
	if n != 2*each+1 || err != nil {
		t.Errorf("%d snapshots, %v", n, err)
	}
}

// TestDeath: a process dies between the two commits of a snapshot. The snapshot is not there, and can be stored.
func TestDeath(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	if err := os.WriteFile(filepath.Join(store.Info().Path, "die"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	adaptertest.Processes(t, store, 1)
	err := store.Use(t.Context(), ctxdir.ContextID(genkit.IndexKind, genkit.IndexKind), func(c *ctxdir.Context) error {
		if n, err := c.Active().Len(t.Context()); n != 1 || err != nil {
			t.Errorf("%d snapshots in the index, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if sn, err := s.GetSnapshot(t.Context(), "x"); sn != nil || err != nil {
		t.Error(sn, err)
	}
	if sn, err := s.GetLatestSnapshot(t.Context(), "7"); sn != nil || err != nil {
		t.Error(sn, err)
	}
	if _, ok := <-s.OnSnapshotStatusChange(t.Context(), "x"); ok {
		t.Error("a snapshot that does not exist has a status")
	}
	save(t, s, "x", at("7", "", 1, state{}, "a"))
	newest(t, s, "7", "x", "a")
	_, err = s.SaveSnapshot(t.Context(), "y", func(*snapshot) (*snapshot, error) { return at("", "", 1, state{}), nil })
	if err == nil {
		t.Error("a snapshot without a session was stored")
	}
}

// TestStatus: a subscriber sees what another handle of the folder stores, and heartbeats only once.
func TestStatus(t *testing.T) {
	store := adaptertest.Open(t, "")
	s, other := genkit.NewStore[state](store), genkit.NewStore[state](adaptertest.Open(t, store.Info().Path))
	status := func(to exp.SnapshotStatus) {
		_, err := other.SaveSnapshot(t.Context(), "p", func(was *snapshot) (*snapshot, error) {
			if was == nil {
				was = at("x", "", 1, state{})
			}
			now := time.Now()
			was.Status, was.State, was.HeartbeatAt = to, nil, &now
			return was, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	status(exp.SnapshotStatusPending)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	statuses := s.OnSnapshotStatusChange(ctx, "p")
	var group sync.WaitGroup
	group.Go(func() {
		for _, to := range []exp.SnapshotStatus{exp.SnapshotStatusPending, exp.SnapshotStatusAborted, exp.SnapshotStatusFailed} {
			for range 3 {
				status(to)
			}
		}
	})
	got := []exp.SnapshotStatus{<-statuses}
	for got[len(got)-1] != exp.SnapshotStatusFailed {
		got = append(got, <-statuses)
	}
	group.Wait()
	if got[0] != exp.SnapshotStatusPending || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("statuses %q", got)
	}
	cancel()
	if got, ok := <-statuses; ok {
		t.Errorf("status %q after the end", got)
	}
}

// TestRemove: a session that was removed is gone with its snapshots, and begins anew.
func TestRemove(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	save(t, s, "s1", at("x", "", 1, state{}, "a"))
	if _, err := adaptertest.Open(t, store.Info().Path).Remove(t.Context(), genkit.ContextID("x")); err != nil {
		t.Fatal(err)
	}
	if sn, err := s.GetSnapshot(t.Context(), "s1"); sn != nil || err != nil {
		t.Errorf("a removed snapshot: %v, %v", sn, err)
	}
	save(t, s, "s1", at("x", "", 1, state{}, "b"))
	newest(t, s, "x", "s1", "b")
	_, err := s.SaveSnapshot(t.Context(), "s1", func(*snapshot) (*snapshot, error) { return at("other", "", 2, state{}, "c"), nil })
	if err != nil {
		t.Fatal(err)
	}
	newest(t, s, "x", "s1", "c") // a snapshot never changes its session
}

// TestEdit: somebody replaces a message, erases another, and empties a snapshot. The session goes on with the rest.
func TestEdit(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := genkit.NewStore[state](store)
	save(t, s, "s1", at("x", "", 1, state{}, "a", "b", "c"))
	message := func(position int64) (id uuid.UUID) {
		err := store.Use(t.Context(), genkit.ContextID("x"), func(c *ctxdir.Context) error {
			m, err := c.Active().Range(t.Context(), position, position+1)
			if err == nil {
				id = m[0].ID
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	replace := func(position int64, typ, body string) {
		err := store.Use(t.Context(), genkit.ContextID("x"), func(c *ctxdir.Context) error {
			return c.Active().Replace(t.Context(), message(position), ctxdir.Draft{Type: typ, Body: json.RawMessage(body)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(0, "", `{"role":"user","content":[{"text":"A"}]}`)
	if _, err := store.Erase(t.Context(), genkit.ContextID("x"), []uuid.UUID{message(1)}, ctxdir.EraseOptions{}); err != nil {
		t.Fatal(err)
	}
	first, err := s.GetSnapshot(t.Context(), "s1")
	expect(t, first, err, "s1", "A", "c")
	next := at("x", "s1", 2, state{}, "d")
	next.State.Messages = append(first.State.Messages, next.State.Messages...)
	save(t, s, "s2", next)
	expectBranches(t, store, "x", "main:6(0)*")
	newest(t, s, "x", "s2", "A", "c", "d")
	replace(5, "snapshot", `{}`)
	if sn, err := s.GetSnapshot(t.Context(), "s2"); err != nil || sn.State != nil {
		t.Error(sn, err)
	}
	save(t, s, "s3", at("x", "s1", 3, state{}, "A", "c"))
	newest(t, s, "x", "s3", "A", "c")
}

// TestLost: a snapshot of which a text is lost is an error, and not absent.
func TestLost(t *testing.T) {
	store := adaptertest.Open(t, "")
	save(t, genkit.NewStore[state](store), "s1", at("x", "", 1, state{}, strings.Repeat("text ", 1<<18)))
	err := store.Use(t.Context(), genkit.ContextID("x"), func(c *ctxdir.Context) error { return c.Admin().Seal(t.Context()) })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(store.Info().Path, "blobs")); err != nil {
		t.Fatal(err)
	}
	s := genkit.NewStore[state](adaptertest.Open(t, store.Info().Path))
	if sn, err := s.GetSnapshot(t.Context(), "s1"); sn != nil || err == nil {
		t.Errorf("a snapshot without its text: %v, %v", sn, err)
	}
	if sn, err := s.GetLatestSnapshot(t.Context(), "x"); sn != nil || err == nil {
		t.Errorf("a session without its text: %v, %v", sn, err)
	}
}
