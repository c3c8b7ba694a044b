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

	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// archivedContext makes a context with payloads, a fork, and all in a pack.
func archivedContext(t *testing.T, opts ...engine.Option) (c *engine.Context, dir string) {
	t.Helper()
	ctx := context.Background()
	c, folder := kit.NewContext(t, append([]engine.Option{engine.WithTextThreshold(1 << 10), engine.WithFoldBytes(-1)}, opts...)...)
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
	if done := kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{})); done.Messages != 20 || done.Stayed != 0 {
		t.Fatalf("%+v", done)
	}
	return c, filepath.Dir(folder)
}

// packFiles returns the packs of a store's contexts, with their content.
func packFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	packs := map[string]string{}
	found, err := filepath.Glob(filepath.Join(dir, "*", "archive", "*"))
	kit.Check(t, err)
	for _, path := range found {
		packs[filepath.Base(path)] = string(kit.Must[[]byte](t)(os.ReadFile(path)))
	}
	return packs
}

// clean fails where a check finds anything.
func clean(t *testing.T, s *engine.Store) {
	t.Helper()
	for _, f := range (&kit.Patient{T: t, Store: s}).Check(true) {
		t.Errorf("check: %+v", f)
	}
}

// TestArchivedPackOfAnotherVersion: a pack of another version is no damage. Whatever needs it fails, nothing is
// changed, and it is read again when a program that knows it has been there.
func TestArchivedPackOfAnotherVersion(t *testing.T) {
	ctx := context.Background()
	for _, where := range []string{"footer", "head"} {
		p := kit.NewArchivedPatient(t, "half")
		path := p.Packs()[0]
		was := kit.Must[[]byte](t)(os.ReadFile(path))
		p.Change(path, func(b []byte) []byte { return otherPackVersion(b, where) })
		before := kit.Tree(t, p.Dir)
		if found := p.Check(true); len(found) != 1 || found[0].Kind != "context" || found[0].Repairable {
			t.Errorf("%s: check: %+v", where, found)
		}
		c := kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
		_, err := c.Active().Load(ctx)
		_, aerr := c.Archive(ctx, engine.ArchiveOptions{})
		_, uerr := c.Unarchive(ctx, nil)
		_, eerr := kit.Erase(p.Store, p.ID, p.Want["main"][2].ID, erase.Options{Shared: true})
		_, ferr := c.Active().Message(ctx, p.Want["main"][2].ID)
		var rerr, cerr error
		for _, err := range p.Store.Repair(ctx, nil, engine.CheckOptions{}) {
			rerr = errors.Join(rerr, err)
		}
		for _, err := range trash.Collect(ctx, p.Store, trash.CollectOptions{Grace: trash.DefaultGrace}) {
			cerr = errors.Join(cerr, err)
		}
		_, perr := c.Active().Append(ctx, engine.Draft{ID: p.Want["main"][2].ID, Body: []byte(`{}`)})
		for i, err := range []error{err, aerr, uerr, eerr, ferr, rerr, cerr, perr} {
			if !errors.Is(err, engine.ErrFormat) {
				t.Errorf("%s, %d: %v", where, i, err)
			}
		}
		kit.Check(t, c.Close())
		if after := kit.Tree(t, p.Dir); after != before {
			t.Errorf("%s: something was changed", where)
		}
		kit.Write(t, path, was)
		if gone, _ := p.Unavailable(); len(gone) > 0 {
			t.Errorf("%s: %v", where, gone)
		}
		clean(t, p.Store)
	}
}

// TestBackupArchived: a backup has the packs as they are, and what is in files; a damaged pack costs the copy what it
// costs the context.
func TestBackupArchived(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, half := range []bool{false, true} {
		c, dir := archivedContext(t)
		if half {
			kit.Append(t, c.Active(), engine.Draft{Body: []byte(kit.LargeBody("c"))})
			kit.Check(t, c.Active().Replace(ctx, kit.TestID(107), engine.Draft{Body: []byte(kit.LargeBody("d"))}))
		}
		kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0}) // the blobs of what is in the pack go
		kit.Check(t, c.Refresh(ctx))
		to := kit.Must[*engine.Store](t)(kit.Init(t.TempDir()))
		for round := range 2 {
			done := kit.Must[backup.Result](t)(backup.Copy(ctx, c.Store, c.ID(), to))
			copied := kit.Must[*engine.Context](t)(to.Context(ctx, c.ID()))
			for _, name := range []string{"main", "alt"} {
				want := kit.ResolvedBodies(t, kit.Must[*engine.Branch](t)(c.Branch(name)))
				got := kit.ResolvedBodies(t, kit.Must[*engine.Branch](t)(copied.Branch(name)))
				if done.Missing != 0 || !slices.Equal(got, want) {
					t.Errorf("half %v, round %d: %s: %d messages, wanted %d; %+v", half, round, name, len(got), len(want), done)
				}
			}
			kit.Check(t, copied.Close())
		}
		var files int
		kit.Check(t, filepath.WalkDir(filepath.Join(to.Path(), c.ID().String(), "messages"), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files++
			}
			return err
		}))
		if want := map[bool]int{false: 0, true: 2}[half]; files != want {
			t.Errorf("half %v: %d message files, wanted %d", half, files, want)
		}
		if packs := packFiles(t, to.Path()); len(packs) != 1 || fmt.Sprint(packs) != fmt.Sprint(packFiles(t, dir)) {
			t.Errorf("half %v: %d packs, or others", half, len(packs))
		}
		kit.Check(t, os.RemoveAll(filepath.Join(to.Path(), "trash")))
		clean(t, to)
		clean(t, c.Store)
		kit.Check(t, c.Close())
	}
}

// TestBackupDamagedPack: what a damaged pack does not have any more is left out of the copy and counted; the rest is
// there.
func TestBackupDamagedPack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, d := range kit.PackDamages[:6] {
		p := kit.NewArchivedPatient(t, "half")
		lost := map[uuid.UUID]bool{}
		for _, id := range d.Do(p) {
			lost[id] = true
		}
		delete(lost, p.Want["main"][27].ID)
		to := kit.Must[*engine.Store](t)(kit.Init(t.TempDir()))
		done := kit.Must[backup.Result](t)(backup.Copy(ctx, p.Store, p.ID, to))
		if int(done.Missing) != len(lost) || (done.Problem != nil) != (len(lost) > 0) {
			t.Errorf("%s: %+v, wanted %d missing", d.Name, done, len(lost))
		}
		q := &kit.Patient{T: t, Store: to, ID: p.ID, Want: p.Want}
		gone, _ := q.Unavailable()
		for id, err := range gone {
			if !lost[id] {
				t.Errorf("%s: %s: %v", d.Name, id, err)
			}
		}
		if len(gone) != len(lost) {
			t.Errorf("%s: %d gone, wanted %d", d.Name, len(gone), len(lost))
		}
	}
}

// TestSweepArchived: the blob of a payload that is in a pack goes, when nothing else refers to it, and comes back with
// the message. One whose payload is damaged in the pack stays.
func TestSweepArchived(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, dir := archivedContext(t)
	main := kit.ResolvedBodies(t, c.Active())
	other := kit.Must[*engine.Context](t)(c.Store.Create(ctx, engine.Metadata{}))
	kit.Append(t, other.Active(), engine.Draft{Body: []byte(kit.LargeBody("b"))})
	kit.Check(t, other.Close())
	if n := len(kit.BlobFiles(t, dir)); n != 4 {
		t.Fatalf("%d blobs", n)
	}
	if moved := kit.Sweep(t, c.Store, time.Hour, false); len(moved) != 0 {
		t.Errorf("before the grace period is over: %+v", moved)
	}
	size := kit.Must[int64](t)(c.BlobBytes(ctx))
	kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
	kit.Check(t, os.RemoveAll(filepath.Join(dir, "trash")), c.Refresh(ctx))
	if n := len(kit.BlobFiles(t, dir)); n != 1 {
		t.Errorf("%d blobs are left, wanted that of the other context", n)
	}
	if got := kit.ResolvedBodies(t, c.Active()); !slices.Equal(got, main) {
		t.Error("main changed")
	}
	if size != 0 || kit.Must[int64](t)(c.BlobBytes(ctx)) != 0 {
		t.Errorf("blobs of %d bytes", size)
	}
	clean(t, c.Store)
	var packs int
	var paths []string
	for path, err := range c.Files(ctx) {
		if kit.Check(t, err); strings.Contains(path, "/archive/") {
			packs++
		}
		paths = append(paths, path)
	}
	if packs != 1 {
		t.Errorf("files: %v", paths)
	}
	at := t.TempDir() // a copy of these files is a store with the context in it
	for _, path := range paths {
		kit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(at, path)), 0o700),
			os.WriteFile(filepath.Join(at, path), kit.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, path))), 0o600))
	}
	copied := kit.Must[*engine.Context](t)(kit.Must[*engine.Store](t)(kit.Open(at)).Context(ctx, c.ID()))
	if got := kit.ResolvedBodies(t, copied.Active()); !slices.Equal(got, main) {
		t.Error("the copied files are not the context")
	}
	kit.Check(t, copied.Close())
	done := kit.Must[engine.ArchiveResult](t)(c.Unarchive(ctx, nil))
	if done.Messages != 20 || done.Stayed != 0 || len(packFiles(t, dir)) != 0 {
		t.Errorf("%+v, %d packs", done, len(packFiles(t, dir)))
	}
	if n := len(kit.BlobFiles(t, dir)); n != 4 {
		t.Errorf("%d blobs", n)
	}
	if got := kit.ResolvedBodies(t, c.Active()); !slices.Equal(got, main) {
		t.Error("main changed")
	}
	kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
	clean(t, c.Store)
	kit.Check(t, c.Close())

	p := kit.NewArchivedPatient(t, "all")
	blobs := len(p.Blobs)
	p.FlipBefore(p.Part("payloads", 0))
	kit.Collect(t, p.Store, trash.CollectOptions{Grace: 0})
	if gone, _ := p.Unavailable(); len(gone) > 0 || blobs == 0 {
		t.Errorf("%d blobs; %v", blobs, gone)
	}
}

// TestCollectArchivedLine: a removed line that was archived keeps its pack for the grace period, and comes back with
// its payloads. A purge removes the pack.
func TestCollectArchivedLine(t *testing.T) {
	ctx := context.Background()
	for _, sweeps := range []bool{false, true} {
		c, dir := archivedContext(t)
		main := kit.ResolvedBodies(t, c.Active())
		gone := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "gone", 3))
		for _, body := range []string{`{"first":1}`, kit.LargeBody("x"), `{"text":"` + strings.Repeat("y small ", 300) + `"}`} {
			kit.Append(t, gone, engine.Draft{Body: []byte(body)})
		}
		want := kit.ResolvedBodies(t, gone)
		done, err := c.Archive(ctx, engine.ArchiveOptions{Branch: "gone"})
		if err != nil || done.Messages != 3 || len(packFiles(t, dir)) != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		if sweeps {
			kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
			kit.Check(t, c.Refresh(ctx))
		}
		kit.Check(t, c.Remove(ctx, "gone"))
		if _, purged := kit.Collect(t, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace}); len(purged) > 0 {
			t.Errorf("%+v", purged)
		}
		kit.Sweep(t, c.Store, 0, false) // the removed line refers to the blobs
		item := kit.Must[engine.TrashItem](t)(kit.FindItem(c.Store, "gone"))
		r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, c.Store, item.Item))
		kit.Check(t, c.Refresh(ctx))
		if got := kit.ResolvedBodies(t, kit.Must[*engine.Branch](t)(c.Branch("gone"))); r.Messages != 3 || !slices.Equal(got, want) {
			t.Errorf("%+v: %d messages", r, len(got))
		}
		if packs := packFiles(t, dir); len(packs) != 2 {
			t.Errorf("%d packs in the grace period", len(packs))
		}
		clean(t, c.Store)
		kit.Check(t, c.Remove(ctx, "gone"))
		kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
		kit.Check(t, c.Refresh(ctx))
		if packs := packFiles(t, dir); len(packs) != 1 || !slices.Equal(kit.ResolvedBodies(t, c.Active()), main) {
			t.Errorf("%d packs after the purge", len(packs))
		}
		clean(t, c.Store)
		kit.Check(t, c.Close())
	}
}

// TestRestoreArchivedVersion: the old version of an archived message comes back from trash.
func TestRestoreArchivedVersion(t *testing.T) {
	ctx := context.Background()
	c, _ := archivedContext(t)
	kit.Check(t, c.Active().Replace(ctx, kit.TestID(107), engine.Draft{Body: []byte(`{"new":1}`)}))
	kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{}))
	items := kit.TrashOf(t, c.Store, "version")
	if len(items) != 1 {
		t.Fatalf("%+v", items)
	}
	kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, c.Store, items[0].Item))
	kit.Check(t, c.Refresh(ctx))
	if m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, kit.TestID(107))); string(m.Stored) != `{"n":7}` {
		t.Errorf("%s", m.Stored)
	}
	if items := kit.TrashOf(t, c.Store, "version"); len(items) != 1 {
		t.Errorf("%+v", items)
	}
	clean(t, c.Store)
	kit.Check(t, c.Close())
}

// TestMostlyDeadPack: a pack most of which was replaced is made anew with what is left, payloads included.
func TestMostlyDeadPack(t *testing.T) {
	ctx := context.Background()
	c, dir := archivedContext(t, engine.WithTextThreshold(1<<20))
	kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
	before := packFiles(t, dir)
	kit.Check(t, c.Refresh(ctx))
	for _, m := range kit.Load(t, c.Active())[8:15] { // the large ones among them
		kit.Check(t, c.Active().Replace(ctx, m.ID, engine.Draft{Body: []byte(`{"new":` + fmt.Sprint(m.Position) + `}`)}))
	}
	want := kit.ResolvedBodies(t, c.Active())
	tried := kit.Tree(t, filepath.Join(dir, c.ID().String()))
	var planned []string
	for x, err := range trash.Collect(ctx, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace, DryRun: true}) {
		kit.Check(t, err)
		planned = append(planned, x.Path)
	}
	if kit.Tree(t, filepath.Join(dir, c.ID().String())) != tried || len(planned) == 0 {
		t.Errorf("a dry run: %v, or something changed", planned)
	}
	kit.Collect(t, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace})
	after := packFiles(t, dir)
	for name := range before {
		if _, there := after[name]; there || len(after) != 1 {
			t.Errorf("%d packs, the old one among them: %v", len(after), there)
		}
	}
	kit.Check(t, c.Refresh(ctx))
	if got := kit.ResolvedBodies(t, c.Active()); !slices.Equal(got, want) {
		t.Error("main changed")
	}
	clean(t, c.Store)
	if moved, _ := kit.Collect(t, c.Store, trash.CollectOptions{Grace: trash.DefaultGrace}); len(moved) > 0 {
		t.Errorf("again: %+v", moved)
	}
	kit.Check(t, c.Close())
}
