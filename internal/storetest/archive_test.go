package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// archivedContext makes a context with payloads and a fork, and archives all.
func archivedContext(t *testing.T, opts ...engine.Option) *engine.Context {
	t.Helper()
	ctx := context.Background()
	c, _ := kit.NewContext(t, append([]engine.Option{engine.WithTextThreshold(1 << 10), engine.WithSealBytes(-1)}, opts...)...)
	for i := range 12 {
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(100 + i), Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	for _, letter := range []string{"a", "b"} {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody(letter))})
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"text":"` + strings.Repeat(letter+" small ", 300) + `"}`)})
	}
	alt := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 5))
	for i := range 4 {
		kit.Append(t, alt, engine.Draft{ID: kit.TestID(200 + i), Body: fmt.Appendf(nil, `{"alt":%d}`, i)})
	}
	if done := kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{})); done.Messages != 20 || done.Stayed != 0 {
		t.Fatalf("%+v", done)
	}
	return c
}

// TestArchive: archived messages have no files, and are read as before; a file that was edited or damaged stays. A second
// archiving has nothing to do. All come back.
func TestArchive(t *testing.T) {
	ctx := context.Background()
	c, dir := kit.NewContext(t, engine.WithSealBytes(-1))
	kit.Fill(t, c.Active(), 10)
	kit.Check(t, c.Flush(ctx))
	ms := kit.Load(t, c.Active())
	file := func(i int) string { return filepath.Join(dir, "messages", "branch-main", ms[i].ID.String()+".json") }
	raw := kit.Must[[]byte](t)(os.ReadFile(file(3)))
	edited := strings.Replace(string(raw), `"message":{`, `"message":{"by":"hand",`, 1)
	kit.Write(t, file(3), []byte(edited))
	kit.Write(t, file(4), raw[:20])
	kit.Check(t, c.Refresh(ctx))
	want := kit.Bodies(t, c.Active())
	files := func() (n int) {
		for i := range ms {
			if _, err := os.Lstat(file(i)); err == nil {
				n++
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
		return n
	}
	for _, step := range []struct {
		name                    string
		do                      func() (archiving.Result, error)
		messages, stayed, files int
	}{
		{"dry run", func() (archiving.Result, error) { return kit.Archive(ctx, c, archiving.Options{DryRun: true}) }, 10, 0, 10},
		{"archive", func() (archiving.Result, error) { return kit.Archive(ctx, c, archiving.Options{}) }, 10, 2, 2},
		{"again", func() (archiving.Result, error) { return kit.Archive(ctx, c, archiving.Options{}) }, 0, 2, 2},
		{"unarchive", func() (archiving.Result, error) { return archiving.Unarchive(ctx, c, nil) }, 8, 0, 10},
		{"again", func() (archiving.Result, error) { return archiving.Unarchive(ctx, c, nil) }, 0, 0, 10},
	} {
		done, err := step.do()
		if err != nil || done.Messages != int64(step.messages) || done.Stayed != int64(step.stayed) || files() != step.files {
			t.Errorf("%s: %+v, %v; %d files", step.name, done, err, files())
		}
		if got := kit.Bodies(t, c.Active()); !slices.Equal(got, want) || !strings.Contains(got[3], "by") {
			t.Errorf("%s: other bodies: %q", step.name, got)
		}
	}
	if string(kit.Must[[]byte](t)(os.ReadFile(file(3)))) != edited {
		t.Error("the edit is gone")
	}
}

// TestArchiveChooses: each option leaves out what it says, and all that follows on the line.
func TestArchiveChooses(t *testing.T) {
	ctx := context.Background()
	now := time.Now()
	for name, x := range map[string]struct {
		o    archiving.Options
		want []int64 // of main, and of the fork
	}{
		"all":               {archiving.Options{}, []int64{8, 8}},
		"a branch":          {archiving.Options{Branch: "alt"}, []int64{4, 8}},
		"not the newest 3":  {archiving.Options{KeepLast: 3}, []int64{5, 5}},
		"not the newest 6":  {archiving.Options{KeepLast: 6}, []int64{2, 4}},
		"not of this week":  {archiving.Options{OlderThan: 7 * 24 * time.Hour}, []int64{6, 4}},
		"not stored lately": {archiving.Options{StoredFor: time.Hour}, []int64{0, 4}},
	} {
		c, _ := kit.NewContext(t, engine.WithSealBytes(-1))
		add := func(b *engine.Branch, at time.Time) {
			kit.Append(t, b, engine.Draft{Body: []byte(`{}`), CreatedAt: at})
		}
		for i := range 8 { // the older ones are of two weeks ago
			at := now
			if i < 6 {
				at = now.Add(-14 * 24 * time.Hour)
			}
			add(c.Active(), at)
		}
		alt := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 4))
		for range 4 {
			add(alt, now)
		}
		kit.Must[archiving.Result](t)(kit.Archive(ctx, c, x.o))
		var got []int64
		for _, l := range c.Metadata().Lines {
			got = append(got, max(l.Archived, l.Base))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: archived up to %v, wanted %v", name, got, x.want)
		}
	}
}

// TestArchivedInTrash: a removed line that was archived comes back with its payloads, and so does the older version of an
// archived message. A purge leaves the others as they are.
func TestArchivedInTrash(t *testing.T) {
	ctx := context.Background()
	c := archivedContext(t)
	gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 3))
	kit.Append(t, gone, engine.Draft{Body: []byte(kit.LargeBody("x"))})
	want := kit.ResolvedBodies(t, gone)
	kit.Check(t, c.Active().Replace(ctx, kit.TestID(107), engine.Draft{Body: []byte(`{"new":1}`)}))
	kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
	kit.Check(t, c.Remove(ctx, "gone"))
	if _, purged := kit.Collect(t, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace}); len(purged) > 0 {
		t.Errorf("%+v", purged)
	}
	kit.Sweep(t, c.Store, 0) // the removed line refers to the blob
	line, version := kit.Must[engine.TrashItem](t)(kit.FindItem(c.Store, "gone")), kit.TrashOf(t, c.Store, "version")
	if len(version) != 1 {
		t.Fatalf("%+v", version)
	}
	for _, item := range []uuid.UUID{line.Item, version[0].Item} {
		kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, c.Store, item))
	}
	kit.Check(t, c.Refresh(ctx))
	if got := kit.ResolvedBodies(t, kit.Must[*engine.Branch](t)(c.Branch("gone"))); !slices.Equal(got, want) {
		t.Errorf("the removed line: %d messages", len(got))
	}
	if m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, kit.TestID(107))); string(m.Stored) != `{"n":7}` {
		t.Errorf("the older version: %s", m.Stored)
	}
	clean(t, c.Store)
	want = kit.ResolvedBodies(t, c.Active())
	kit.Check(t, c.Remove(ctx, "gone"))
	kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
	kit.Check(t, c.Refresh(ctx))
	if got := kit.ResolvedBodies(t, c.Active()); !slices.Equal(got, want) {
		t.Error("main changed")
	}
	clean(t, c.Store)
	kit.Check(t, c.Close())
}
