package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// parted makes a context of three messages. Two programs go on, each with a copy of its own, and append a secret and four
// more messages. Then the files of both come into one folder. It returns the messages of each history.
func parted(t *testing.T) (s *engine.Store, id uuid.UUID, histories [2][]uuid.UUID) {
	t.Helper()
	ctx := context.Background()
	s, root := kit.NewStore(t, kit.Manual(200)...)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	id = c.ID()
	dir, before, after := filepath.Join(root, id.String()), t.TempDir(), t.TempDir()
	var both []uuid.UUID
	for i := range 3 {
		both = append(both, kit.Append(t, c.Active(), engine.Draft{Body: fmt.Appendf(nil, `{"both":%d}`, i)}).ID)
	}
	kit.Check(t, c.Close(), copyTree(dir, before))
	for i := range histories {
		kit.Check(t, os.RemoveAll(dir), copyTree(before, dir))
		c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		histories[i] = slices.Clone(both)
		for n := range 5 {
			text := map[bool]string{true: kit.Canary}[n == 0]
			body := fmt.Appendf(nil, `{"history":%d,"n":%d,"text":"%s"}`, i, n, text)
			histories[i] = append(histories[i], kit.Append(t, c.Active(), engine.Draft{Body: body}).ID)
			if n == 2 {
				kit.Check(t, c.Seal(ctx))
			}
		}
		kit.Check(t, c.Close(), copyTree(dir, after))
	}
	kit.Check(t, copyTree(after, dir))
	return s, id, histories
}

// showing returns the messages of each branch.
func showing(t *testing.T, s *engine.Store, id uuid.UUID) (branches [][]uuid.UUID) {
	t.Helper()
	c := kit.Must[*engine.Context](t)(s.Context(context.Background(), id))
	defer c.Close()
	for _, info := range kit.Must[[]engine.BranchInfo](t)(c.Branches(context.Background())) {
		var ids []uuid.UUID
		for _, m := range kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(info.Name))) {
			if kit.Check(t, m.Unavailable); m.Unavailable == nil {
				ids = append(ids, m.ID)
			}
		}
		branches = append(branches, ids)
	}
	return branches
}

// TestOtherHistory: of two histories in one folder one counts, whole, and goes on. A check tells of the files of the other
// one, and a repair moves those that only it has to the trash. With Adopt it takes the messages in.
func TestOtherHistory(t *testing.T) {
	ctx := context.Background()
	for _, adopt := range []bool{false, true} {
		s, id, histories := parted(t)
		got := showing(t, s, id)
		counts := slices.IndexFunc(histories[:], func(h []uuid.UUID) bool { return len(got) == 1 && slices.Equal(got[0], h) })
		if counts < 0 {
			t.Fatalf("it shows %v, neither %v nor %v", got, histories[0], histories[1])
		}
		kinds := map[integrity.Kind]int{}
		for f, err := range checking.Check(ctx, s, nil, checking.Options{}) {
			if kit.Check(t, err); f.Severity != integrity.SeverityWarning {
				t.Errorf("%+v", f)
			}
			kinds[f.Kind]++
		}
		if kinds[integrity.KindLog] != 1 || kinds[integrity.KindSegment] != 1 || kinds[integrity.KindForeign] != 5 || len(kinds) != 3 {
			t.Errorf("findings %v", kinds)
		}
		c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		more := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"more":1}`)}).ID
		kit.Check(t, c.Seal(ctx), c.Close())
		kit.Finish(t, checking.Repair(ctx, s, nil, checking.Options{Adopt: adopt}))
		if kept := kit.Must[[]string](t)(filepath.Glob(filepath.Join(s.Path(), id.String(), "trash", "*", "*"))); len(kept) < 2 {
			t.Errorf("in the trash: %v", kept)
		}
		want := [][]uuid.UUID{append(slices.Clone(histories[counts]), more)}
		if adopt {
			want = append(want, histories[1-counts])
			clean(t, s)
		}
		if got := showing(t, s, id); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("adopt %v: it shows %v, wanted %v", adopt, got, want)
		}
	}
}

// TestEraseOtherHistory: a message that only the files of another history have is erased all the same.
func TestEraseOtherHistory(t *testing.T) {
	s, id, histories := parted(t)
	for _, dry := range []bool{true, false} {
		before := kit.Tree(t, s.Path())
		for _, h := range histories {
			if done, err := kit.Erase(s, id, h[3], erase.Options{DryRun: dry}); err != nil || len(done) == 0 {
				t.Fatalf("%s: %+v, %v", h[3], done, err)
			}
		}
		if dry && before != kit.Tree(t, s.Path()) {
			t.Error("a dry run changed something")
		}
	}
	if found := kit.FilesWith(t, s.Path(), kit.Canary); len(found) > 0 {
		t.Errorf("the secret is in %v", found)
	}
	kit.Finish(t, checking.Repair(context.Background(), s, nil, checking.Options{Adopt: true}))
	c := kit.Must[*engine.Context](t)(s.Context(context.Background(), id))
	defer c.Close()
	there := map[uuid.UUID]bool{}
	for _, info := range kit.Must[[]engine.BranchInfo](t)(c.Branches(context.Background())) {
		for _, m := range kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(info.Name))) {
			there[m.ID] = m.Unavailable == nil
		}
	}
	for _, h := range histories {
		for i, m := range h {
			if there[m] != (i != 3) {
				t.Errorf("message %d: there %v", i, there[m])
			}
		}
	}
	if _, err := kit.Erase(s, id, uuid.New(), erase.Options{}); !errors.Is(err, engine.ErrNotExist) {
		t.Errorf("erasing what is nowhere: %v", err)
	}
}
