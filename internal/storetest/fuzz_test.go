package storetest_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/collected"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// fuzzedStore is a store with something of everything in it: a file of each kind.
func fuzzedStore(t testing.TB) (disk *crashfs.FS, files []string) {
	t.Helper()
	ctx := context.Background()
	do := func(errs ...error) {
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	disk = crashfs.New()
	s, err := kit.Init("disk", kit.CrashOptions(disk, engine.WithTextThreshold(64))...)
	do(err)
	c, err := s.Create(ctx, engine.Metadata{ID: kit.TestID(60000), Title: "T"})
	do(err)
	main := c.Active()
	for range 3 {
		_, err = main.Append(ctx, engine.Draft{Body: []byte(`{"role":"user","content":"` + strings.Repeat("text ", 40) + `"}`)})
		do(err)
	}
	_, err = kit.Archive(ctx, c, archiving.Options{})
	do(err)
	alt, err := main.Fork(ctx, "alt", 2)
	do(err)
	for _, b := range []*engine.Branch{alt, main, main} {
		_, err = b.Append(ctx, engine.Draft{Body: []byte(`{"role":"assistant"}`)})
		do(err)
	}
	last, err := main.Last(ctx, 1)
	do(err, c.Seal(ctx), main.Replace(ctx, last[0].ID, engine.Draft{Body: []byte(`{"role":"model"}`)}), main.Rewind(ctx, 4))
	for _, err := range trash.Collect(ctx, s, trash.CollectOptions{Grace: time.Hour}) {
		do(err)
	}
	_, err = main.Append(ctx, engine.Draft{Body: []byte(`{"n":1}`)})
	do(err, trash.CollectIfDue(ctx, s, trash.CollectOptions{Grace: time.Hour}),
		vfs.WriteSynced(disk, c.ID().String()+"/erasing.json", []byte(`{"ctxdir":"erasing/1","messages":[],"blobs":[]}`)),
		c.Close())
	gone, err := s.Create(ctx, engine.Metadata{ID: kit.TestID(60001)})
	do(err, gone.Close())
	_, err = s.Delete(ctx, gone.ID())
	do(err)
	for _, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
		do(err)
	}
	do(s.Close())
	files = filesIn(t, disk, ".")
	slices.Sort(files)
	return disk, files
}

func filesIn(t testing.TB, disk vfs.FS, dir string) (files []string) {
	for e, err := range disk.ReadDir(dir) {
		if err != nil {
			t.Fatal(err)
		}
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			files = append(files, filesIn(t, disk, name)...)
		} else if !strings.HasPrefix(name, "locks/") {
			files = append(files, name)
		}
	}
	return files
}

// FuzzFiles puts anything in the place of a file of a store and does all that reads it: nothing panics, hangs, or takes
// more memory than there is; and who writes then says why he cannot, or does it.
func FuzzFiles(f *testing.F) {
	begun, files := fuzzedStore(f)
	for i, name := range files {
		raw, err := vfs.ReadFile(begun, name, 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, raw)
		f.Add(i, raw[:len(raw)/2])
		f.Add(i, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, i int, raw []byte) {
		if i < 0 || i >= len(files) || len(raw) > 1<<20 {
			t.Skip("no such file, or a large one")
		}
		disk := begun.Clone()
		if err := disk.Remove(files[i]); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteSynced(disk, files[i], raw); err != nil {
			t.Fatal(err)
		}
		useAll(disk)
	})
}

// useAll does what a program can do with a store. Errors are for it to tell.
func useAll(disk *crashfs.FS) {
	ctx := context.Background()
	s, err := kit.Open("disk", kit.CrashOptions(disk, engine.WithoutPause())...)
	if err != nil {
		return
	}
	defer s.Close()
	for range listing.New(s).List(ctx, listing.ListOptions{}) {
	}
	for range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
	}
	for range trash.List(ctx, s) {
	}
	_ = collected.Last(s)
	if c, err := s.Context(ctx, kit.TestID(60000)); err == nil {
		use(ctx, c)
	}
	for range checking.Repair(ctx, s, nil, checking.Options{}) {
	}
	if c, err := s.Context(ctx, kit.TestID(60000)); err == nil {
		use(ctx, c)
	}
	for range trash.Collect(ctx, s, trash.CollectOptions{}) {
	}
}

func use(ctx context.Context, c *engine.Context) {
	defer c.Close()
	w, err := follow.WatchContext(ctx, c, 0)
	if err == nil {
		for range w.Pending(ctx) {
		}
		defer w.Close()
	}
	_, _ = c.Branches(ctx)
	for _, name := range []string{"main", "alt"} {
		b, err := c.Branch(name)
		if err != nil {
			continue
		}
		for m, err := range b.Messages(ctx) {
			if err == nil && m.Unavailable == nil {
				_, _ = m.Body(ctx)
			}
		}
		_, _ = b.Append(ctx, engine.Draft{Body: []byte(`{}`)})
	}
	_, _ = archiving.Unarchive(ctx, c, nil)
	_ = c.Seal(ctx)
}
