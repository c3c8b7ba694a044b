package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// restoredOver makes a context of three messages, and copies that over its own newer state: 30 more messages in a pack,
// the first of them secret, and two in a journal and no file.
func restoredOver(t *testing.T) (s *engine.Store, id uuid.UUID, dir string, newer []uuid.UUID) {
	t.Helper()
	ctx := context.Background()
	s, root := kit.NewStore(t, kit.Manual(200, engine.WithRetain(-1))...)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	id, dir = c.ID(), filepath.Join(root, c.ID().String())
	add := func(body string) uuid.UUID {
		return kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)}).ID
	}
	for i := range 3 {
		add(fmt.Sprintf(`{"old":%d}`, i))
	}
	saved := t.TempDir()
	c.PutBlobs()
	kit.Check(t, copyTree(dir, saved))
	for i := range 30 {
		secret := map[bool]string{true: kit.Canary}[i == 0]
		newer = append(newer, add(fmt.Sprintf(`{"new":%d,"text":"%s %s"}`, i, strings.Repeat("word ", 50), secret)))
	}
	_, err := c.Archive(ctx, engine.ArchiveOptions{})
	kit.Check(t, err)
	for i := range 2 {
		newer = append(newer, add(fmt.Sprintf(`{"last":%d,"text":"%s"}`, i, map[bool]string{true: kit.Canary}[i == 0])))
	}
	kit.Check(t, c.Log.Fold(ctx, false)) // journal 3 has what journal 2 had in the older copy
	kit.Check(t, c.Close())
	for _, m := range newer[30:] {
		kit.Check(t, os.Remove(filepath.Join(dir, "messages", "branch-main", m.String()+".json")))
	}
	kit.Check(t, copyTree(saved, dir))
	return s, id, dir, newer
}

func checked(t *testing.T, s *engine.Store) (found []engine.Finding) {
	t.Helper()
	for f, err := range s.Check(context.Background(), nil, engine.CheckOptions{}) {
		kit.Check(t, err)
		found = append(found, f)
	}
	return found
}

// TestRestoredOverNewer: a check tells of the journal and the pack that an older copy of a context left behind it; a
// collection leaves the pack alone; a repair moves the journal to the trash; with Adopt it takes the messages of both
// in.
func TestRestoredOverNewer(t *testing.T) {
	ctx := context.Background()
	for _, adopt := range []bool{false, true} {
		t.Run(fmt.Sprint("adopt ", adopt), func(t *testing.T) {
			s, id, dir, newer := restoredOver(t)
			kinds := map[integrity.Kind]int{}
			for _, f := range checked(t, s) {
				if f.Severity != engine.SeverityWarning && !strings.HasSuffix(f.Path, "journal-4.jsonl") { // that one holds nothing
					t.Errorf("%+v", f)
				}
				kinds[f.Kind]++
			}
			if kinds[integrity.KindJournal] != 2 || kinds[integrity.KindForeign] != 1 || len(kinds) != 2 {
				t.Fatalf("findings %v", kinds)
			}
			kit.Collect(t, s, trash.CollectOptions{Contexts: []uuid.UUID{id}, Grace: trash.DefaultGrace})
			packs := func() int { return len(kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "archive", "*.zst")))) }
			if packs() != 1 {
				t.Error("a collection removed the pack")
			}
			for _, err := range s.Repair(ctx, nil, engine.CheckOptions{Adopt: adopt}) {
				kit.Check(t, err)
			}
			trashed := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "trash", "*", "journal-*.jsonl")))
			if len(trashed) != 2 || strings.Contains(trashed[0]+trashed[1], "journal-1.jsonl") {
				t.Errorf("in the trash: %v", trashed)
			}
			c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
			defer c.Close()
			infos := kit.Must[[]engine.BranchInfo](t)(c.Branches(ctx))
			if !adopt {
				if found := checked(t, s); len(found) != 1 || found[0].Kind != integrity.KindForeign || len(infos) != 1 || packs() != 1 {
					t.Errorf("findings %+v, branches %+v", found, infos)
				}
				return
			}
			if found := checked(t, s); len(found) > 0 || packs() != 0 {
				t.Fatalf("findings %+v, %d packs", found, packs())
			}
			ms := kit.Load(t, c.Active()) // they go on where the line ends
			if len(ms) != 35 {
				t.Fatalf("%d messages taken in", len(ms))
			}
			for i, m := range ms[3:] {
				if body, err := m.Body(ctx); m.ID != newer[i] || err != nil || len(body) == 0 {
					t.Errorf("message %d: %s, %v", i, m.ID, err)
				}
			}
		})
	}
}

// TestEraseOtherHistory: a message that only a journal or a pack of another history holds is erased all the same, and
// the others in these stay.
func TestEraseOtherHistory(t *testing.T) {
	ctx := context.Background()
	s, id, dir, newer := restoredOver(t)
	if found := kit.FilesWith(t, dir, kit.Canary); len(found) == 0 {
		t.Fatal("no secret to be erased")
	}
	for _, dry := range []bool{true, false} {
		before := kit.Tree(t, s.Path())
		for _, m := range []uuid.UUID{newer[0], newer[30]} {
			if done, err := kit.Erase(s, id, m, erase.Options{DryRun: dry}); err != nil || len(done) == 0 {
				t.Fatalf("%s: %+v, %v", m, done, err)
			}
		}
		if dry && before != kit.Tree(t, s.Path()) {
			t.Error("a dry run changed something")
		}
	}
	if found := kit.FilesWith(t, s.Path(), kit.Canary); len(found) > 0 {
		t.Errorf("the secret is in %v", found)
	}
	for _, err := range s.Repair(ctx, nil, engine.CheckOptions{Adopt: true}) {
		kit.Check(t, err)
	}
	c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
	defer c.Close()
	n := 0
	for _, info := range kit.Must[[]engine.BranchInfo](t)(c.Branches(ctx)) {
		for _, m := range kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(info.Name))) {
			if _, err := m.Body(ctx); err == nil && m.Unavailable == nil && strings.Contains(string(m.Stored), "new") {
				n++
			}
		}
	}
	if n != 29 {
		t.Errorf("%d of the other 29 messages of the pack are there", n)
	}
	if _, err := kit.Erase(s, id, uuid.New(), erase.Options{}); !errors.Is(err, engine.ErrNotExist) {
		t.Errorf("erasing what is nowhere: %v", err)
	}
}
