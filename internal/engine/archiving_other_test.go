package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// resolvedBodies returns the bodies of a branch, payloads put back.
func resolvedBodies(t *testing.T, b *Branch) (all []string) {
	t.Helper()
	ctx := context.Background()
	for _, body := range must[[]json.RawMessage](t)(ResolveAll(ctx, must[[]*Message](t)(b.Load(ctx)))) {
		all = append(all, string(body))
	}
	return all
}

// archivedContext makes a context with payloads, a fork, and all in a pack.
func archivedContext(t *testing.T, opts ...Option) (c *Context, dir string) {
	t.Helper()
	ctx := context.Background()
	c, folder := newContext(t, append([]Option{WithTextThreshold(1 << 10), WithFoldBytes(-1)}, opts...)...)
	for i := range 12 {
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(100 + i), Body: fmt.Appendf(nil, `{"n":%d}`, i)}))
	}
	for _, letter := range []string{"a", "b"} {
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody(letter))}))
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"text":"` + strings.Repeat(letter+" small ", 300) + `"}`)}))
	}
	alt := must[*Branch](t)(c.Active().Fork(ctx, "alt", 5))
	for i := range 4 {
		must[Appended](t)(alt.Append(ctx, Draft{ID: testID(200 + i), Body: fmt.Appendf(nil, `{"alt":%d}`, i)}))
	}
	if done := must[Archived](t)(c.Archive(ctx, ArchiveOptions{})); done.Messages != 20 || done.Stayed != 0 {
		t.Fatalf("%+v", done)
	}
	return c, filepath.Dir(folder)
}

// packFiles returns the packs of a store's contexts, with their content.
func packFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	packs := map[string]string{}
	found, err := filepath.Glob(filepath.Join(dir, "*", "archive", "*"))
	check(t, err)
	for _, path := range found {
		packs[filepath.Base(path)] = string(must[[]byte](t)(os.ReadFile(path)))
	}
	return packs
}

// clean fails where a check finds anything.
func clean(t *testing.T, s *Store) {
	t.Helper()
	for _, f := range (&patient{t: t, store: s}).check(true) {
		t.Errorf("check: %+v", f)
	}
}

// TestArchivedPackOfAnotherVersion: a pack of another version is no damage. Whatever needs it fails, nothing is
// changed, and it is read again when a program that knows it has been there.
func TestArchivedPackOfAnotherVersion(t *testing.T) {
	ctx := context.Background()
	for _, where := range []string{"footer", "head"} {
		p := newArchived(t, "half")
		path := p.packs()[0]
		was := must[[]byte](t)(os.ReadFile(path))
		p.change(path, func(b []byte) []byte { return otherPackVersion(b, where) })
		before := tree(t, p.dir)
		if found := p.check(true); len(found) != 1 || found[0].Kind != "context" || found[0].Repairable {
			t.Errorf("%s: check: %+v", where, found)
		}
		c := must[*Context](t)(p.store.Context(ctx, p.id))
		_, err := c.Active().Load(ctx)
		_, aerr := c.Archive(ctx, ArchiveOptions{})
		_, uerr := c.Unarchive(ctx, nil)
		_, eerr := erase(p.store, p.id, p.want["main"][2].id, EraseOptions{Shared: true})
		_, ferr := c.Active().Message(ctx, p.want["main"][2].id)
		var rerr, cerr error
		for _, err := range p.store.Repair(ctx, nil, CheckOptions{}) {
			rerr = errors.Join(rerr, err)
		}
		for _, err := range p.store.Collect(ctx, Collecting{Grace: DefaultGrace}) {
			cerr = errors.Join(cerr, err)
		}
		_, perr := c.Active().Append(ctx, Draft{ID: p.want["main"][2].id, Body: []byte(`{}`)})
		for i, err := range []error{err, aerr, uerr, eerr, ferr, rerr, cerr, perr} {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%s, %d: %v", where, i, err)
			}
		}
		check(t, c.Close())
		if after := tree(t, p.dir); after != before {
			t.Errorf("%s: something was changed", where)
		}
		write(t, path, was)
		if gone, _ := p.ill(); len(gone) > 0 {
			t.Errorf("%s: %v", where, gone)
		}
		clean(t, p.store)
	}
}

// TestBackupArchived: a backup has the packs as they are, and what is in files; a damaged pack costs the copy what it costs the context.
func TestBackupArchived(t *testing.T) {
	ctx := context.Background()
	for _, half := range []bool{false, true} {
		c, dir := archivedContext(t)
		if half {
			must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(largeBody("c"))}))
			check(t, c.Active().Replace(ctx, testID(107), Draft{Body: []byte(largeBody("d"))}))
		}
		collect(t, c.store, Collecting{Grace: 0}) // the blobs of what is in the pack go
		check(t, c.Refresh(ctx))
		to := must[*Store](t)(Init(t.TempDir()))
		for round := range 2 {
			done := must[BackedUp](t)(c.store.Backup(ctx, c.ID(), to))
			copied := must[*Context](t)(to.Context(ctx, c.ID()))
			for _, name := range []string{"main", "alt"} {
				want, got := resolvedBodies(t, must[*Branch](t)(c.Branch(name))), resolvedBodies(t, must[*Branch](t)(copied.Branch(name)))
				if done.Missing != 0 || !slices.Equal(got, want) {
					t.Errorf("half %v, round %d: %s: %d messages, wanted %d; %+v", half, round, name, len(got), len(want), done)
				}
			}
			check(t, copied.Close())
		}
		var files int
		check(t, filepath.WalkDir(filepath.Join(to.Path(), c.ID().String(), "messages"), func(_ string, d fs.DirEntry, err error) error {
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
		check(t, os.RemoveAll(filepath.Join(to.Path(), "trash")))
		clean(t, to)
		clean(t, c.store)
		check(t, c.Close())
	}
}

// TestBackupDamagedPack: what a damaged pack does not have any more is left out of the copy and counted; the rest is there.
func TestBackupDamagedPack(t *testing.T) {
	ctx := context.Background()
	for _, d := range archivedDamages[:6] {
		p := newArchived(t, "half")
		lost := map[uuid.UUID]bool{}
		for _, id := range d.do(p) {
			lost[id] = true
		}
		delete(lost, p.want["main"][27].id)
		to := must[*Store](t)(Init(t.TempDir()))
		done := must[BackedUp](t)(p.store.Backup(ctx, p.id, to))
		if int(done.Missing) != len(lost) || (done.Problem != nil) != (len(lost) > 0) {
			t.Errorf("%s: %+v, wanted %d missing", d.name, done, len(lost))
		}
		q := &patient{t: t, store: to, id: p.id, want: p.want}
		gone, _ := q.ill()
		for id, err := range gone {
			if !lost[id] {
				t.Errorf("%s: %s: %v", d.name, id, err)
			}
		}
		if len(gone) != len(lost) {
			t.Errorf("%s: %d gone, wanted %d", d.name, len(gone), len(lost))
		}
	}
}

// TestSweepArchived: the blob of a payload that is in a pack goes, when nothing else refers to it, and comes back with
// the message. One whose payload is damaged in the pack stays.
func TestSweepArchived(t *testing.T) {
	ctx := context.Background()
	c, dir := archivedContext(t)
	main := resolvedBodies(t, c.Active())
	other := must[*Context](t)(c.store.Create(ctx, Metadata{}))
	must[Appended](t)(other.Active().Append(ctx, Draft{Body: []byte(largeBody("b"))}))
	check(t, other.Close())
	if n := len(blobFiles(t, dir)); n != 4 {
		t.Fatalf("%d blobs", n)
	}
	if moved := sweep(t, c.store, time.Hour, false); len(moved) != 0 {
		t.Errorf("before the grace period is over: %+v", moved)
	}
	size := must[int64](t)(c.BlobBytes(ctx))
	collect(t, c.store, Collecting{Grace: 0})
	check(t, os.RemoveAll(filepath.Join(dir, "trash")), c.Refresh(ctx))
	if n := len(blobFiles(t, dir)); n != 1 {
		t.Errorf("%d blobs are left, wanted that of the other context", n)
	}
	if got := resolvedBodies(t, c.Active()); !slices.Equal(got, main) {
		t.Error("main changed")
	}
	if size != 0 || must[int64](t)(c.BlobBytes(ctx)) != 0 {
		t.Errorf("blobs of %d bytes", size)
	}
	clean(t, c.store)
	var packs int
	var paths []string
	for path, err := range c.Files(ctx) {
		if check(t, err); strings.Contains(path, "/archive/") {
			packs++
		}
		paths = append(paths, path)
	}
	if packs != 1 {
		t.Errorf("files: %v", paths)
	}
	at := t.TempDir() // a copy of these files is a store with the context in it
	for _, path := range paths {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(at, path)), 0o700),
			os.WriteFile(filepath.Join(at, path), must[[]byte](t)(os.ReadFile(filepath.Join(dir, path))), 0o600))
	}
	copied := must[*Context](t)(must[*Store](t)(Open(at)).Context(ctx, c.ID()))
	if got := resolvedBodies(t, copied.Active()); !slices.Equal(got, main) {
		t.Error("the copied files are not the context")
	}
	check(t, copied.Close())
	if done := must[Archived](t)(c.Unarchive(ctx, nil)); done.Messages != 20 || done.Stayed != 0 || len(packFiles(t, dir)) != 0 {
		t.Errorf("%+v, %d packs", done, len(packFiles(t, dir)))
	}
	if n := len(blobFiles(t, dir)); n != 4 {
		t.Errorf("%d blobs", n)
	}
	if got := resolvedBodies(t, c.Active()); !slices.Equal(got, main) {
		t.Error("main changed")
	}
	collect(t, c.store, Collecting{Grace: 0})
	clean(t, c.store)
	check(t, c.Close())

	p := newArchived(t, "all")
	blobs := len(p.blobs)
	p.flipBefore(p.part("payloads", 0))
	collect(t, p.store, Collecting{Grace: 0})
	if gone, _ := p.ill(); len(gone) > 0 || blobs == 0 {
		t.Errorf("%d blobs; %v", blobs, gone)
	}
}

// TestCollectArchivedLine: the end of a line that was archived goes to trash, and comes back, after its pack went too, with its payloads.
func TestCollectArchivedLine(t *testing.T) {
	ctx := context.Background()
	for _, sweeps := range []bool{false, true} {
		c, dir := archivedContext(t)
		main := resolvedBodies(t, c.Active())
		gone := must[*Branch](t)(c.Active().Fork(ctx, "gone", 3))
		for _, body := range []string{`{"first":1}`, largeBody("x"), `{"text":"` + strings.Repeat("y small ", 300) + `"}`} {
			must[Appended](t)(gone.Append(ctx, Draft{Body: []byte(body)}))
		}
		want := resolvedBodies(t, gone)
		if done := must[Archived](t)(c.Archive(ctx, ArchiveOptions{Branch: "gone"})); done.Messages != 3 || len(packFiles(t, dir)) != 2 {
			t.Fatalf("%+v", done)
		}
		if sweeps {
			collect(t, c.store, Collecting{Grace: 0})
			check(t, c.Refresh(ctx))
		}
		check(t, c.Remove(ctx, "gone"))
		var item uuid.UUID
		for range 3 { // the line, then its pack, then blobs
			moved, purged := collect(t, c.store, Collecting{Grace: DefaultGrace})
			for _, x := range moved {
				if x.Kind == "line" {
					item = x.Item
				}
			}
			if len(purged) > 0 {
				t.Errorf("%+v", purged)
			}
			check(t, c.Refresh(ctx))
		}
		if packs := packFiles(t, dir); len(packs) != 1 || item == uuid.Nil {
			t.Fatalf("%d packs, item %s", len(packs), item)
		}
		sweep(t, c.store, 0, false) // what is in trash refers to them
		if got := resolvedBodies(t, c.Active()); !slices.Equal(got, main) {
			t.Error("main changed")
		}
		r := must[Restored](t)(c.store.Restore(ctx, item))
		check(t, c.Refresh(ctx))
		if got := resolvedBodies(t, must[*Branch](t)(c.Branch("gone"))); r.Messages != 3 || !slices.Equal(got, want) {
			t.Errorf("%+v: %d messages", r, len(got))
		}
		clean(t, c.store)
		check(t, c.Close())
	}
}

// TestRestoreArchivedVersion: the old version of an archived message comes back from trash.
func TestRestoreArchivedVersion(t *testing.T) {
	ctx := context.Background()
	c, _ := archivedContext(t)
	check(t, c.Active().Replace(ctx, testID(107), Draft{Body: []byte(`{"new":1}`)}))
	must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
	items := trashOf(t, c.store, "version")
	if len(items) != 1 {
		t.Fatalf("%+v", items)
	}
	must[Restored](t)(c.store.Restore(ctx, items[0].Item))
	check(t, c.Refresh(ctx))
	if m := must[*Message](t)(c.Active().Message(ctx, testID(107))); string(m.Stored) != `{"n":7}` {
		t.Errorf("%s", m.Stored)
	}
	if items := trashOf(t, c.store, "version"); len(items) != 1 {
		t.Errorf("%+v", items)
	}
	clean(t, c.store)
	check(t, c.Close())
}

// TestMostlyDeadPack: a pack most of which was replaced is made anew with what is left, payloads included.
func TestMostlyDeadPack(t *testing.T) {
	ctx := context.Background()
	c, dir := archivedContext(t, WithTextThreshold(1<<20))
	collect(t, c.store, Collecting{Grace: 0})
	before := packFiles(t, dir)
	check(t, c.Refresh(ctx))
	for _, m := range must[[]*Message](t)(c.Active().Load(ctx))[8:15] { // the large ones among them
		check(t, c.Active().Replace(ctx, m.ID, Draft{Body: []byte(`{"new":` + fmt.Sprint(m.Position) + `}`)}))
	}
	want := resolvedBodies(t, c.Active())
	tried := tree(t, filepath.Join(dir, c.ID().String()))
	var planned []string
	for x, err := range c.store.Collect(ctx, Collecting{Grace: DefaultGrace, DryRun: true}) {
		check(t, err)
		planned = append(planned, x.Path)
	}
	if tree(t, filepath.Join(dir, c.ID().String())) != tried || len(planned) == 0 {
		t.Errorf("a dry run: %v, or something changed", planned)
	}
	collect(t, c.store, Collecting{Grace: DefaultGrace})
	after := packFiles(t, dir)
	for name := range before {
		if _, there := after[name]; there || len(after) != 1 {
			t.Errorf("%d packs, the old one among them: %v", len(after), there)
		}
	}
	check(t, c.Refresh(ctx))
	if got := resolvedBodies(t, c.Active()); !slices.Equal(got, want) {
		t.Error("main changed")
	}
	clean(t, c.store)
	if moved, _ := collect(t, c.store, Collecting{Grace: DefaultGrace}); len(moved) > 0 {
		t.Errorf("again: %+v", moved)
	}
	check(t, c.Close())
}
