package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// TestCollectCopies: a pack that a stopped archive left behind goes before its messages are collected. Behind that it
// would look like a pack of another history, which stays.
func TestCollectCopies(t *testing.T) {
	ctx := context.Background()
	c, dir := newContext(t)
	fill(t, c.Active(), 3)
	alt := must[*Branch](t)(c.Active().Fork(ctx, "alt", 1))
	fill(t, alt, 4)
	must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
	packs := must[[]string](t)(filepath.Glob(filepath.Join(dir, "archive", "*.zst")))
	pack := must[[]byte](t)(os.ReadFile(packs[0]))
	must[Archived](t)(c.Unarchive(ctx, nil))
	check(t, os.WriteFile(packs[0], pack, 0o600), c.Remove(ctx, "alt"), c.Refresh(ctx))
	for done, err := range c.store.Collect(ctx, Collecting{}) {
		if check(t, err); done.Kind == "line" {
			break // stopped when the messages are in the trash
		}
	}
	for range 2 {
		for _, err := range c.store.Collect(ctx, Collecting{}) {
			check(t, err)
		}
	}
	for f, err := range c.store.Check(ctx, nil, CheckOptions{ReadData: true}) {
		check(t, err)
		t.Errorf("%s: %s %s", f.Kind, f.Path, f.Detail)
	}
}

// TestCollectDropped: a pack that a stopped collection made anew and did not remove holds messages that are gone. It is
// no pack of another history.
func TestCollectDropped(t *testing.T) {
	ctx := context.Background()
	c, dir := newContext(t)
	fill(t, c.Active(), 3)
	alt := must[*Branch](t)(c.Active().Fork(ctx, "alt", 1))
	fill(t, alt, 4)
	must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
	packs := must[[]string](t)(filepath.Glob(filepath.Join(dir, "archive", "*.zst")))
	pack := must[[]byte](t)(os.ReadFile(packs[0]))
	check(t, c.Remove(ctx, "alt"))
	for _, err := range c.store.Collect(ctx, Collecting{Grace: time.Hour}) {
		check(t, err)
	}
	if _, err := os.Stat(packs[0]); err == nil {
		t.Fatal("the pack was not made anew")
	}
	check(t, os.WriteFile(packs[0], pack, 0o600))
	for item := range c.store.Purge(ctx, nil, 0, false) { // the messages themselves
		check(t, item.Problem)
	}
	for _, when := range []string{"at once", "after a collection"} {
		for f, err := range c.store.Check(ctx, nil, CheckOptions{ReadData: true}) {
			check(t, err)
			t.Errorf("%s: %s: %s %s", when, f.Kind, f.Path, f.Detail)
		}
		for _, err := range c.store.Collect(ctx, Collecting{}) {
			check(t, err)
		}
	}
	if _, err := os.Stat(packs[0]); err == nil {
		t.Error("the pack is still there")
	}
}

// TestCollectUnread: a pack of which a collection cuts off the last messages that were read from it goes in the same
// collection. A rebuild would bring them back.
func TestCollectUnread(t *testing.T) {
	ctx := context.Background()
	c, dir := newContext(t)
	fill(t, c.Active(), 3)
	must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
	first := must[[]*Message](t)(c.Active().Range(ctx, 0, 1))
	check(t, c.Active().Replace(ctx, first[0].ID, Draft{Body: []byte(`{"replaced":true}`)}), c.Active().Rewind(ctx, 1), c.Fold(ctx))
	for _, err := range c.store.Collect(ctx, Collecting{Grace: time.Hour}) {
		check(t, err)
	}
	if packs := must[[]string](t)(filepath.Glob(filepath.Join(dir, "archive", "*.zst"))); len(packs) > 0 {
		t.Errorf("%v is left", packs)
	}
	check(t, c.Close())
	for _, pattern := range []string{"journal-*", "index.json", "index"} {
		for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, pattern))) {
			check(t, os.RemoveAll(path))
		}
	}
	for done, err := range c.store.Collect(ctx, Collecting{Grace: time.Hour}) {
		check(t, err)
		t.Errorf("collected again: %+v", done)
	}
}

// TestPurgeDropsCut: an item goes from the trash after the packs that still have its messages were written anew.
// Afterwards they would look like messages of another history.
func TestPurgeDropsCut(t *testing.T) {
	ctx := context.Background()
	purges := map[string]func(c *Context) error{
		"gc": func(c *Context) error { return collectAll(c.store, 0) },
		"trash empty": func(c *Context) error {
			for x, err := range c.store.Purge(ctx, nil, 0, false) {
				if err != nil || x.Problem != nil {
					return errors.Join(err, x.Problem)
				}
			}
			return nil
		},
	}
	for name, purge := range purges {
		c, _ := newContext(t)
		fill(t, c.Active(), 9)
		must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
		check(t, c.Active().Rewind(ctx, 6))
		for done, err := range c.store.Collect(ctx, Collecting{Grace: time.Hour}) {
			if check(t, err); done.Kind == "line" {
				break // stopped when the messages are in the trash, and still in the pack
			}
		}
		check(t, purge(c), collectAll(c.store, time.Hour))
		for f, err := range c.store.Check(ctx, nil, CheckOptions{ReadData: true}) {
			check(t, err)
			t.Errorf("%s: %s: %s %s", name, f.Kind, f.Path, f.Detail)
		}
	}
}

// TestPowerCutWhilePurging cuts the power at each operation of the purge of TestPurgeDropsCut. Another purge then
// finishes it: the branch shows what it should, and a check finds nothing of another history.
func TestPowerCutWhilePurging(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	states := 0
	for k := 1; ; k += stride() {
		disk := crashfs.New()
		s := must[*Store](t)(Init("disk", onCrashFS(disk, inOrder())...))
		c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
		fill(t, c.Active(), 9)
		must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
		check(t, c.Active().Rewind(ctx, 6), c.Close())
		for done, err := range s.Collect(ctx, Collecting{Grace: time.Hour}) {
			if check(t, err); done.Kind == "line" {
				break
			}
		}
		disk.CutAt(len(disk.Ops()) + k)
		for range s.Purge(ctx, nil, 0, false) { // what failed is looked at afterwards
		}
		cut := disk.PowerCut()
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
			states++
			s := must[*Store](t)(Open("disk", onCrashFS(disk.Crash(choice), inOrder())...))
			for _, err := range s.Purge(ctx, nil, 0, false) {
				check(t, err)
			}
			check(t, collectAll(s, time.Hour))
			c := must[*Context](t)(s.Context(ctx, testID(60000)))
			if n := must[int64](t)(c.Active().Len(ctx)); n != 6 {
				t.Errorf("cut at %d (%s), disk %s: %d messages", k, lastOp(disk), choice, n)
			}
			for f, err := range s.Check(ctx, nil, CheckOptions{ReadData: true}) {
				if check(t, err); f.Severity == SeverityError || f.Kind == integrity.KindForeign {
					t.Fatalf("cut at %d (%s), disk %s: %s: %s %s", k, lastOp(disk), choice, f.Kind, f.Path, f.Detail)
				}
			}
			check(t, c.Close(), s.Close())
		}
		if !cut {
			break
		}
	}
	t.Logf("%d disk states", states)
}
