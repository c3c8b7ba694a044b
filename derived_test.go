package ctxdir_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/ctxdirtest"
	"github.com/google/uuid"
)

// rowsOf returns the state of a context, and the positions of the rows that it has since an earlier one.
func rowsOf(t *testing.T, c *ctxdir.Context, since string) (state string, at []int64, err error) {
	t.Helper()
	state, rows := c.Changes(t.Context(), since)
	for r, err := range rows {
		if err != nil {
			return "", nil, err
		}
		at = append(at, r.Position)
	}
	return state, at, nil
}

func TestChanges(t *testing.T) {
	ctx := t.Context()
	s := must(ctxdir.Init(t.TempDir()))
	defer s.Close()
	c := must(s.Create(ctx, ctxdir.Metadata{}))
	defer c.Close()
	b := c.Active()
	for range 3 {
		must(b.Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"x"}`)}))
	}
	expect := func(since string, want ...int64) string {
		t.Helper()
		state, at, err := rowsOf(t, c, since)
		if err != nil || !slices.Equal(at, want) {
			t.Errorf("positions %v, want %v; %v", at, want, err)
		}
		return state
	}
	first := expect("", 0, 1, 2)
	line := must(c.Branches(ctx))[0].Line
	old := time.Now().Add(-time.Minute)
	for _, name := range must(filepath.Glob(filepath.Join(s.Info().Path, c.ID().String(), "*"))) {
		check(os.Chtimes(name, old, old))
	}
	check(os.Chtimes(filepath.Join(s.Info().Path, c.ID().String()), old, old))
	state, other := expect(first), uuid.New()
	since := map[uuid.UUID]string{c.ID(): state, other: state}
	if all := must(s.Changed(ctx, since)); len(all) != 1 || all[c.ID()] {
		t.Errorf("without a commit: %v", all)
	}
	if some := must(s.Changed(ctx, since, c.ID(), other)); some[c.ID()] || !some[other] {
		t.Errorf("without a commit: %v", some)
	}
	messages := must(b.Range(ctx, 0, 3))
	must(b.Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"y"}`)}))
	check(b.Replace(ctx, messages[1].ID, ctxdir.Draft{Body: []byte(`{"role":"user","content":"z"}`)}))
	second := expect(first, 3, 1)
	if all := must(s.Changed(ctx, since)); !all[c.ID()] {
		t.Error("a commit is not seen")
	}
	check(b.Rewind(ctx, 1))
	third := expect(second)
	expect("", 0, 1, 2, 3)
	if all := must(must(c.Branch(line.String())).Range(ctx, 1, 9)); len(all) != 3 || all[0].Line != line {
		t.Errorf("the line without a name has %d messages", len(all))
	}
	if _, err := must(c.Branch(line.String())).Append(ctx, ctxdir.Draft{Body: []byte(`{}`)}); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("an append to a line without a name: %v", err)
	}
	must(s.Erase(ctx, c.ID(), []uuid.UUID{messages[0].ID}, ctxdir.EraseOptions{}))
	if _, _, err := rowsOf(t, c, third); !errors.Is(err, ctxdir.ErrNotExist) {
		t.Errorf("after an erase: %v", err)
	}
}

// TestDerived erases a message: a view is told, and the files of others go.
func TestDerived(t *testing.T) {
	ctx := t.Context()
	s := must(ctxdir.Init(t.TempDir()))
	defer s.Close()
	c := must(s.Create(ctx, ctxdir.Metadata{}))
	defer c.Close()
	var told []uuid.UUID
	var failed error
	folder := must(s.Derived("mine", func(_ context.Context, contexts []uuid.UUID) error {
		told = contexts
		return failed
	}))
	must(s.Derived("empty", nil))
	for _, want := range []bool{true, false} {
		check(os.MkdirAll(folder, 0o700))
		for _, name := range []string{"mine.db", "mine.db-wal", "empty", "other.txt"} {
			check(os.WriteFile(filepath.Join(folder, name), nil, 0o600))
		}
		id := must(c.Active().Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"x"}`)})).ID
		must(s.Erase(ctx, c.ID(), []uuid.UUID{id}, ctxdir.EraseOptions{}))
		if len(told) != 1 || told[0] != c.ID() {
			t.Errorf("told %v", told)
		}
		entries, err := os.ReadDir(folder)
		if want && (err != nil || len(entries) != 2) || !want && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left: %v, %v", entries, err)
		}
		failed = errors.New("no")
	}
	r := must(ctxdir.Open(s.Info().Path, ctxdir.Options{ReadOnly: true}))
	defer r.Close()
	if _, err := r.Derived("mine", nil); !errors.Is(err, ctxdir.ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	if _, err := ctxdirtest.New(t).Derived("mine", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a folder: %v", err)
	}
}
