package storetest_test

import (
	"bytes"
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
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestPowerCutAfterAnEdit edits metadata.json by hand, changes the context, and cuts the power at each operation. The
// edit counts, unless a later title was acknowledged: then the edited file must not count again, whatever the disk
// brings back. The same holds without the edit for a file that is behind the log.
func TestPowerCutAfterAnEdit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	states := 0
	for _, edited := range []bool{true, false} {
		for k := range kit.Cuts(1) {
			disk := crashfs.New()
			s := kit.Must[*engine.Store](t)(kit.Init("disk", kit.CrashOptions(disk, engine.InOrder())...))
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000), Title: "first"}))
			kit.Fill(t, c.Active(), 3)
			first := "first"
			if edited {
				first = "by hand"
				editTitle(t, disk, c.ID().String(), "first", first)
			}
			title := []string{first} // those that may be shown: the last one, or what was not acknowledged yet
			branches := []string{"main"}
			disk.CutAt(len(disk.Ops()) + k)
			for i, change := range []func() error{
				func() error { _, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{"n":4}`)}); return err },
				func() error { _, err := c.Active().Fork(ctx, "alt", 2); return err },
				func() error {
					title = append(title, "later")
					return c.Update(ctx, func(m *engine.Metadata) error { m.Title = "later"; return nil })
				},
				func() error { return c.Rename(ctx, "alt", "beta") },
				func() error { return c.Seal(ctx) },
				func() error { return c.Rename(ctx, "beta", "gamma") },
			} {
				if err := change(); err != nil {
					break
				}
				switch i {
				case 1:
					branches = []string{"main", "alt"}
				case 2:
					title = []string{"later"}
				case 3:
					branches = []string{"main", "beta"}
				case 5:
					branches = []string{"main", "gamma"}
				}
			}
			cut := disk.PowerCut()
			choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k)), crashfs.Random(uint64(k) + 1000)}
			for _, choice := range choices {
				states++
				if err := shownAfterAnEdit(ctx, disk.Crash(choice), title, branches); err != nil {
					t.Fatalf("edited %v, cut at %d (%s), disk %s: %v", edited, k, kit.LastOp(disk), choice, err)
				}
			}
			if !cut {
				break
			}
		}
	}
	t.Logf("%d disk states", states)
}

// shownAfterAnEdit opens the store twice, with a write between: what it shows stays.
func shownAfterAnEdit(ctx context.Context, disk *crashfs.FS, titles, branches []string) error {
	s, err := kit.Open("disk", kit.CrashOptions(disk, engine.InOrder())...)
	if err != nil {
		return err
	}
	defer s.Close()
	shown := ""
	for range 2 {
		c, err := s.Context(ctx, kit.TestID(60000))
		if err != nil {
			return err
		}
		title := c.Metadata().Title
		if shown == "" {
			shown = title
		}
		if title != shown || !contains(titles, title) {
			return fmt.Errorf("the title is %q, then %q, of %q", shown, title, titles)
		}
		for _, name := range branches {
			b, err := c.Branch(name)
			if err != nil && name == "main" {
				return err
			}
			if err != nil { // a rename that was not acknowledged
				if b, err = c.Branch(c.Metadata().Branches[1].Name); err != nil {
					return err
				}
			}
			ms, err := b.Range(ctx, 0, 2)
			if err != nil || len(ms) != 2 || ms[0].Unavailable != nil || ms[1].Unavailable != nil {
				return fmt.Errorf("branch %s shows %v, %w", name, ms, err)
			}
		}
		if _, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{"more":true}`)}); err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		if err != nil || f.Severity != integrity.SeverityInfo && f.Kind == "metadata" {
			return fmt.Errorf("%s: %s, %w", f.Path, f.Detail, err)
		}
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, x := range all {
		if x == one {
			return true
		}
	}
	return false
}

// editTitle edits metadata.json as an editor does, durably.
func editTitle(t *testing.T, disk *crashfs.FS, dir, from, to string) {
	t.Helper()
	sub := kit.Must[vfs.FS](t)(disk.Sub(dir))
	raw := kit.Must[[]byte](t)(vfs.ReadFile(sub, "metadata.json", 1<<20))
	now := bytes.Replace(raw, []byte(`"title": "`+from+`"`), []byte(`"title": "`+to+`"`), 1)
	if bytes.Equal(now, raw) {
		t.Fatalf("%s has no title %q", raw, from)
	}
	f := kit.Must[vfs.File](t)(sub.OpenFile("metadata.json", os.O_WRONLY|os.O_TRUNC))
	_, err := f.Write(now)
	kit.Check(t, err, f.Sync(), f.Close(), sub.SyncDir("."), sub.Close())
}

// TestSavedInPlace: an editor empties metadata.json and writes it again. What happens to the context meanwhile does not cost
// the edit.
func TestSavedInPlace(t *testing.T) {
	ctx := context.Background()
	for name, meanwhile := range map[string]func(c *engine.Context) error{
		"append":          func(c *engine.Context) error { return add1(c, `{"n":9}`) },
		"seal":            func(c *engine.Context) error { return c.Seal(ctx) },
		"metadata":        func(c *engine.Context) error { return c.Switch(ctx, "b") },
		"metadata, flush": func(c *engine.Context) error { return errors.Join(c.Switch(ctx, "b"), c.Flush(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := kit.NewContext(t)
			kit.Fill(t, c.Active(), 4)
			kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "b", 2))
			kit.Check(t, c.Flush(ctx))
			path := filepath.Join(dir, "metadata.json")
			var m engine.Object
			kit.Check(t, m.UnmarshalJSON(kit.Must[[]byte](t)(os.ReadFile(path))))
			m.SetText("title", "by hand")
			edited := kit.Must[[]byte](t)(m.MarshalJSON())

			f := kit.Must[*os.File](t)(os.Create(path))
			defer f.Close()
			for part := range slices.Chunk(edited, len(edited)/2+1) {
				kit.Check(t, meanwhile(c), c.Refresh(ctx))
				if title := c.Metadata().Title; title != "" {
					t.Errorf("the title is %q before the file has it", title)
				}
				kit.Must[int](t)(f.Write(part))
			}
			kit.Check(t, c.Refresh(ctx))
			if title := c.Metadata().Title; title != "by hand" {
				t.Errorf("the title is %q", title)
			}
			kit.Check(t, meanwhile(c))
			again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
			defer again.Close()
			if title := again.Metadata().Title; title != "by hand" {
				t.Errorf("the title is %q after the next commit", title)
			}
		})
	}
}
