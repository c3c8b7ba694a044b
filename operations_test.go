package ctxdir_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
)

// stocked is a store with contexts of one message each.
func stocked(t *testing.T, contexts int) (s *ctxdir.Store, ids []uuid.UUID) {
	t.Helper()
	s, err := ctxdir.Init(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for i := range contexts {
		id := uuid.MustParse("0195f0a0-0000-7000-8000-000000000000")
		id[15] = byte(0xa0 + i)
		c, err := s.Create(t.Context(), ctxdir.Metadata{ID: id})
		if err == nil {
			_, err = c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(`{"role":"user","content":"hello"}`)})
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return s, ids
}

func overwrite(t *testing.T, s *ctxdir.Store, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Info().Path, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRepairStore: a store without its own file opens for reading only, says why, and is the same store after the
// repair.
func TestRepairStore(t *testing.T) {
	s, ids := stocked(t, 1)
	was := s.Info()
	if was.Problem != nil {
		t.Fatal(was.Problem)
	}
	overwrite(t, s, "ctxdir.json", "")
	if _, err := ctxdir.Open(was.Path); !errors.Is(err, ctxdir.ErrDamaged) {
		t.Errorf("opened: %v", err)
	}
	reading, err := ctxdir.Open(was.Path, ctxdir.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if info := reading.Info(); !errors.Is(info.Problem, ctxdir.ErrDamaged) {
		t.Errorf("the problem: %v", info.Problem)
	}
	if _, err := reading.Open(t.Context(), ids[0]); err != nil {
		t.Errorf("a context: %v", err)
	}
	for i, want := range []int{1, 0} {
		done, err := ctxdir.RepairStore(was.Path)
		if err != nil || len(done) != want || want == 1 && (done[0].Kind != "store" || done[0].Path != "ctxdir.json") {
			t.Errorf("repair %d: %+v, %v", i, done, err)
		}
	}
	again, err := ctxdir.Open(was.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if now := again.Info(); now.ID != was.ID || now.Problem != nil {
		t.Errorf("after the repair: %+v, before: %+v", now, was)
	}
	overwrite(t, s, "ctxdir.json", `{"ctxdir":"store/2"}`)
	if _, err := ctxdir.RepairStore(was.Path); !errors.Is(err, ctxdir.ErrFormat) {
		t.Errorf("a newer store: %v", err)
	}
}

// TestFailed: a callback gets what failed for one context, and the others are done. The error has what stops an
// operation, and all of it without a callback.
func TestFailed(t *testing.T) {
	s, ids := stocked(t, 3)
	overwrite(t, s, ids[1].String()+"/metadata.json", `{"ctxdir":"context/9"}`)
	reading, err := ctxdir.Open(s.Info().Path, ctxdir.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	operations := map[string]func(s *ctxdir.Store, failed func(error)) (int, error){
		"archive": func(s *ctxdir.Store, failed func(error)) (int, error) {
			done, err := s.Archive(t.Context(), ctxdir.ArchiveOptions{All: true, Failed: failed})
			return len(done), err
		},
		"repair": func(s *ctxdir.Store, failed func(error)) (int, error) {
			_, err := s.Repair(t.Context(), ctxdir.RepairOptions{All: true, Failed: failed})
			return 2, err
		},
		"collect": func(s *ctxdir.Store, failed func(error)) (int, error) {
			_, err := s.Collect(t.Context(), ctxdir.CollectOptions{Contexts: ids, Failed: failed})
			return 2, err
		},
	}
	for name, run := range operations {
		var failures []error
		failed := func(err error) { failures = append(failures, err) }
		done, err := run(s, failed)
		where := new(ctxdir.Error)
		if err != nil || done != 2 || len(failures) != 1 || !errors.Is(failures[0], ctxdir.ErrFormat) ||
			!errors.As(failures[0], &where) || where.Context != ids[1] {
			t.Errorf("%s: %d done, %v, failed: %v", name, done, err, failures)
		}
		if done, err := run(s, nil); done != 2 || !errors.Is(err, ctxdir.ErrFormat) {
			t.Errorf("%s without a callback: %d done, %v", name, done, err)
		}
		failures = nil
		if _, err := run(reading, failed); name != "archive" && (!errors.Is(err, ctxdir.ErrReadOnly) || failures != nil) {
			t.Errorf("%s in a store for reading: %v, failed: %v", name, err, failures)
		}
	}
}

// TestPurge: no items are no reason to remove all of them.
func TestPurge(t *testing.T) {
	s, ids := stocked(t, 3)
	var items []uuid.UUID
	for _, id := range ids {
		item, err := s.Remove(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item.ID)
	}
	left := func() (n int) {
		for _, err := range s.Trash(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	for i, step := range []struct {
		purge      ctxdir.PurgeOptions
		done, left int
	}{
		{ctxdir.PurgeOptions{Items: items[:1], DryRun: true}, 1, 3},
		{ctxdir.PurgeOptions{Items: items[:1]}, 1, 2},
		{ctxdir.PurgeOptions{Age: 1 << 50}, 0, 2},
		{ctxdir.PurgeOptions{All: true, DryRun: true}, 2, 2},
		{ctxdir.PurgeOptions{All: true}, 2, 0},
	} {
		done, err := s.Purge(t.Context(), step.purge)
		if n := left(); err != nil || n != step.left || len(done) != step.done {
			t.Errorf("step %d: %d done, %d left, wanted %d and %d; %v", i, len(done), n, step.done, step.left, err)
		}
	}
}

// TestNewBranch: a new branch has no messages and no system prompt; a fork has both.
func TestNewBranch(t *testing.T) {
	s, _ := stocked(t, 0)
	c, err := s.Create(t.Context(), ctxdir.Metadata{Branches: []ctxdir.BranchMetadata{{SystemPrompt: json.RawMessage(`"Be brief."`)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	add := map[string]func(name string) (*ctxdir.Branch, error){
		"new":  func(name string) (*ctxdir.Branch, error) { return c.NewBranch(t.Context(), name) },
		"fork": func(name string) (*ctxdir.Branch, error) { return c.Active().Fork(t.Context(), name, 0) },
	}
	for name, want := range map[string]string{"new": "", "fork": `"Be brief."`} {
		b, err := add[name](name)
		if err != nil {
			t.Fatal(err)
		}
		if prompt, err := b.SystemPrompt(t.Context()); err != nil || string(prompt) != want {
			t.Errorf("%s: prompt %s, %v", name, prompt, err)
		}
		if _, err := add[name](name); !errors.Is(err, ctxdir.ErrExist) {
			t.Errorf("%s again: %v", name, err)
		}
	}
}

// TestErrorsOfParts: an error of the engine is an Error of this package, wherever it comes from.
func TestErrorsOfParts(t *testing.T) {
	s, ids := stocked(t, 2)
	item, err := s.Remove(t.Context(), ids[1])
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Open(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	overwrite(t, s, ids[0].String()+"/metadata.json", "{")
	reading, err := ctxdir.Open(s.Info().Path, ctxdir.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	damaged, err := reading.Open(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	defer damaged.Close()
	if m := damaged.Metadata(); m.Problem != nil || m.ActiveBranch != "main" {
		t.Errorf("the log has the metadata: %+v", m)
	}
	if _, err := s.ResolveItem(t.Context(), item.ID.String()[24:]); err != nil {
		t.Errorf("an item by the part that lists show: %v", err)
	}
	for name, test := range map[string]struct {
		do   func(ctx context.Context) error
		want error
	}{
		"an import": {func(ctx context.Context) error {
			_, err := reading.Importer().Open(ctx, importer.Info{ID: uuid.New()})
			return err
		}, ctxdir.ErrReadOnly},
		"a rollback": {func(ctx context.Context) error {
			_, err := s.Rollback(ctx, ids[0], ctxdir.RollbackOptions{})
			return err
		}, ctxdir.ErrInvalid},
		"a branch":  {func(context.Context) error { _, err := c.Branch("none"); return err }, ctxdir.ErrNotExist},
		"an item":   {func(ctx context.Context) error { _, err := s.ResolveItem(ctx, "0123456789ab"); return err }, ctxdir.ErrNotExist},
		"a context": {func(context.Context) error { _, err := s.Resolve("ffff"); return err }, ctxdir.ErrNotExist},
	} {
		err := test.do(t.Context())
		if where := new(ctxdir.Error); !errors.As(err, &where) || !errors.Is(err, test.want) {
			t.Errorf("%s: %v (%T)", name, err, err)
		}
	}
}

// TestBranchMethods: a branch is renamed, keeps a state and is removed by its handle, which is of no use after that.
func TestBranchMethods(t *testing.T) {
	ctx := t.Context()
	s, ids := stocked(t, 1)
	c, err := s.Open(ctx, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	was, err := c.Active().Fork(ctx, "first", 1)
	if err != nil {
		t.Fatal(err)
	}
	if state := c.Metadata().Branch("first").State; state != nil {
		t.Errorf("state %s", state)
	}
	if err := c.Update(ctx, setState("first", `{"step": 1}`)); err != nil {
		t.Fatal(err)
	}
	b, err := was.Rename(ctx, "second")
	if err != nil || b.Name() != "second" {
		t.Fatalf("%v, %v", b, err)
	}
	if state := c.Metadata().Branch("second").State; string(state) != `{"step":1}` || c.Metadata().Branch("first") != nil {
		t.Errorf("state %s", state)
	}
	if err := c.Update(ctx, setState("second", ""), ctxdir.WriteOptions{Sequence: new(uint64(1))}); !errors.Is(err, ctxdir.ErrPosition) {
		t.Errorf("the state of another commit: %v", err)
	}
	if err := c.Update(ctx, setState("second", ""), ctxdir.WriteOptions{Sequence: new(c.Summary().Sequence)}); err != nil {
		t.Error(err)
	}
	if state := c.Metadata().Branch("second").State; state != nil {
		t.Errorf("state %s", state)
	}
	if err := b.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"rename":        only(was.Rename(ctx, "third")),
		"remove":        b.Remove(ctx),
		"system prompt": only(b.SystemPrompt(ctx)),
	} {
		if at := new(ctxdir.Error); !errors.Is(err, ctxdir.ErrNotExist) || !errors.As(err, &at) || at.Branch == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Active().Remove(ctx); !errors.Is(err, ctxdir.ErrInvalid) {
		t.Errorf("the active branch was removed: %v", err)
	}
}

// only returns the error of a call.
func only(_ any, err error) error { return err }
