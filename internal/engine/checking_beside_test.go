package engine

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// nothingFound fails for what a check of a whole store finds.
func nothingFound(t *testing.T, when string, s *Store, o CheckOptions) {
	t.Helper()
	for f, err := range s.Check(context.Background(), nil, o) {
		t.Errorf("%s: %+v, %v", when, f, err)
	}
}

func finish[T any](t *testing.T, all iter.Seq2[T, error]) {
	t.Helper()
	for _, err := range all {
		check(t, err)
	}
}

// TestCheckBesideBlobs: between the look at a message and that at its payload others take both away, or move them. Nothing is wrong then.
func TestCheckBesideBlobs(t *testing.T) {
	ctx := context.Background()
	body := func(n int) []byte { return fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n, strings.Repeat("long ", 100)) }
	for name, do := range map[string]func(s *Store, c *Context){
		"erased": func(s *Store, c *Context) {
			finish(t, s.Erase(ctx, c.ID(), []uuid.UUID{testID(1)}, EraseOptions{}))
		},
		"archived": func(s *Store, c *Context) {
			must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
			finish(t, s.Sweep(ctx, 0, false))
		},
	} {
		disk := crashfs.New()
		s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1), WithTextThreshold(100)))
		c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(1), Body: body(1)}))
		check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire))
		done := false
		nothing := func(string) {}
		beside := &hooked{FS: disk, remove: nothing, open: func(name string) {
			if !done && strings.HasPrefix(name, "blobs/") {
				done = true
				do(s, c)
			}
		}}
		checks := must[*Store](t)(Open("disk", withFS(beside), withoutPause()))
		nothingFound(t, name, checks, CheckOptions{})
		if !done {
			t.Errorf("%s: no blob was looked at", name)
		}
		check(t, checks.Close(), c.Close(), s.Close())
	}
}

// TestCheckBesideArchive: while a check looks closely at what did not look right, one message that was edited and one
// whose file was elsewhere for a while, somebody archives, and somebody appends meanwhile, so that the newest journal
// stays. The check tells of the one that was edited alone.
func TestCheckBesideArchive(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
	defer s.Close()
	c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
	defer c.Close()
	for n := range 3 {
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(n), Body: fmt.Appendf(nil, `{"n":%d}`, n)}))
	}
	check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire))
	path := func(n int) string { return c.ID().String() + "/" + c.dir.MessagePath("branch-main", testID(n)) }
	raw := must[[]byte](t)(vfs.ReadFile(disk, path(0), 1<<20))
	check(t, disk.Remove(path(0)), vfs.WriteNew(disk, path(0), bytes.Replace(raw, []byte(`{"n":0}`), []byte(`{"n":9}`), 1)))
	away := c.ID().String() + "/messages/branch-main/.away"
	check(t, disk.Rename(path(1), away))
	done := false
	beside := &hooked{FS: disk, remove: func(string) {}, open: func(name string) {
		if !done && strings.HasPrefix(name, testID(0).String()) {
			done = true
			check(t, disk.Rename(away, path(1)))
			appended := false
			must[Archived](t)(c.Archive(ctx, ArchiveOptions{Progress: func(int64, int64) {
				if !appended {
					must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"n":4}`)}))
				}
				appended = true
			}}))
		}
	}}
	checks := must[*Store](t)(Open("disk", withFS(beside), withoutPause()))
	defer checks.Close()
	for f, err := range checks.Check(ctx, nil, CheckOptions{}) {
		if check(t, err); f.Kind != integrity.KindEdited || f.ID != testID(0) {
			t.Errorf("%+v", f)
		}
	}
	if !done {
		t.Error("nothing was archived meanwhile")
	}
}

// TestCheckBesideRewind: between the look at metadata.json and that at the index somebody takes the messages away that
// a branch began behind, and the branch before that.
func TestCheckBesideRewind(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
	defer s.Close()
	c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
	defer c.Close()
	fill(t, c.Active(), 6)
	fill(t, must[*Branch](t)(c.Active().Fork(ctx, "alt", 5)), 2)
	done := false
	beside := &hooked{FS: disk, remove: func(string) {}, open: func(name string) {
		if !done && name == "index.json" {
			done = true
			check(t, c.Remove(ctx, "alt"), c.Active().Rewind(ctx, 1))
			for _, err := range s.Collect(ctx, Collecting{Contexts: []uuid.UUID{c.ID()}, Grace: time.Hour}) {
				check(t, err)
			}
		}
	}}
	checks := must[*Store](t)(Open("disk", withFS(beside), withoutPause()))
	defer checks.Close()
	nothingFound(t, "rewound", checks, CheckOptions{})
	if !done {
		t.Error("nothing was rewound meanwhile")
	}
}

// TestCheckBesideSettle: a payload of two contexts has no blob yet when the first of them is looked at, and no journal
// has it any more when the second one is.
func TestCheckBesideSettle(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithFoldBytes(-1), WithTextThreshold(100), withoutPause())
	var contexts []*Context
	for n := range 2 {
		c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000 + n)}))
		defer c.Close()
		must[Appended](t)(c.Active().Append(ctx, Draft{Body: fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("long ", 100))}))
		contexts = append(contexts, c)
	}
	for _, c := range contexts {
		c.PutBlobs()
	}
	check(t, os.RemoveAll(dir+"/blobs"))
	settled := false
	nothingFound(t, "settled in between", s, CheckOptions{Progress: func(p CheckProgress) {
		if p.Contexts == 1 && !settled {
			settled = true
			for _, c := range contexts {
				check(t, c.log.Fold(ctx, true), c.log.Exclusively(ctx, c.log.Retire))
			}
		}
	}})
	if !settled {
		t.Error("nothing was settled in between")
	}
}

// TestCheckUnsettled: a blob that is missing is nothing wrong while the journal that has its payload is not settled,
// folded or not: it may never have been there. A message file was, so that it is told of, and comes back by a repair or
// a settle. What is missing after that is told.
func TestCheckUnsettled(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithFoldBytes(-1), WithTextThreshold(100), withoutPause())
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	defer c.Close()
	must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(1), Body: fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("long ", 100))}))
	c.PutBlobs()
	file := dir + "/" + c.ID().String() + "/" + c.dir.MessagePath("branch-main", testID(1))
	expect := func(when, want string) {
		t.Helper()
		var found []string
		for f, err := range s.Check(ctx, nil, CheckOptions{ReadData: true}) {
			check(t, err)
			found = append(found, string(f.Severity)+" "+string(f.Kind))
		}
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	lose := func() { check(t, os.Remove(file), os.Remove(blobFiles(t, dir)[0])) }
	lose()
	expect("not folded", "warning message-missing")
	check(t, c.log.Fold(ctx, false))
	expect("folded", "warning message-missing")
	check(t, c.log.Fold(ctx, true))
	lose() // fails unless they are there again
	expect("settled", "warning message-missing, warning blob-missing")
	finish(t, s.Repair(ctx, nil, CheckOptions{}))
	expect("repaired", "")
}

// TestCheckBesideAppend: a message file that is missing may be on its way while something comes into its folder.
func TestCheckBesideAppend(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithFoldBytes(-1))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	defer c.Close()
	must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(1), Body: []byte(`{"n":1}`)}))
	folder := dir + "/" + c.ID().String() + "/messages/branch-main"
	file := folder + "/" + testID(1).String() + ".json"
	check(t, os.Remove(file))
	for want, moving := range []bool{true, false} {
		beside := &hooked{FS: s.fs, open: func(string) {}, remove: func(string) {}, look: func(name string) {
			if moving && name == "messages/branch-main" {
				check(t, os.Chtimes(folder, time.Time{}, must[fs.FileInfo](t)(os.Stat(folder)).ModTime().Add(time.Second)))
			}
		}}
		checks := must[*Store](t)(Open(dir, withFS(beside), withoutPause()))
		var found []Finding
		for f, err := range checks.Check(ctx, nil, CheckOptions{}) {
			check(t, err)
			found = append(found, f)
		}
		if len(found) != want {
			t.Errorf("something comes: %v, found: %+v", moving, found)
		}
		check(t, checks.Close())
	}
}
