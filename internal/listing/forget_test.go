package listing_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// toldFS is a file system that tells before each step with a file.
type toldFS struct {
	vfs.FS
	before func(step, name string)
}

func (f *toldFS) Lstat(name string) (fs.FileInfo, error) {
	f.before("look", name)
	return f.FS.Lstat(name)
}

func (f *toldFS) OpenFile(name string, flag int) (vfs.File, error) {
	if strings.HasPrefix(name, "."+listing.SummariesFile) {
		f.before("write", listing.SummariesFile)
	}
	return f.FS.OpenFile(name, flag)
}

func (f *toldFS) Rename(from, to string) error {
	f.before("rename", to)
	return f.FS.Rename(from, to)
}

func (f *toldFS) Sub(name string) (vfs.FS, error) {
	sub, err := f.FS.Sub(name)
	return &toldFS{sub, f.before}, err
}

// TestForgetBesideList: a list that read a context does not write what it read once that is forgotten, whether it has
// yet to write the file, writes it, puts it in its place, or did so.
func TestForgetBesideList(t *testing.T) {
	for _, x := range []struct {
		when, step, name string
		time             int // which of these steps of the list
	}{
		{"before it writes", "look", engine.ChangesFile, 2},
		{"when it writes", "write", listing.SummariesFile, 1},
		{"when it wrote", "rename", listing.SummariesFile, 1},
		{"at its end", "look", engine.ChangesFile, 3},
	} {
		s, dir := kit.NewStore(t)
		var ids []uuid.UUID
		for i := range 3 {
			ids = append(ids, labelled(t, s, engine.Metadata{Title: fmt.Sprint("title ", i)}, nil))
		}
		old(t, dir, ids...)
		steps := 0
		disk := &toldFS{kit.Must[vfs.FS](t)(vfs.OS(dir)), func(step, name string) {
			if step == x.step && name == x.name {
				if steps++; steps == x.time {
					kit.Check(t, listing.Forget(s, ids[1]))
				}
			}
		}}
		beside := kit.Must[*engine.Store](t)(kit.Open(dir, engine.WithFS(disk)))
		defer beside.Close()
		l := listing.New(beside)
		if n := len(kit.ListBy(t, l)); n != 3 || steps < x.time {
			t.Errorf("%s: %d contexts after %d steps", x.when, n, steps)
		}
		b, err := os.ReadFile(filepath.Join(dir, listing.SummariesFile))
		has := func(title string) bool { return strings.Contains(string(b), title) }
		// Its temporary file is removed before it can put it in its place.
		if there := x.step != "rename"; has("title 1") || has("title 0") != there || has("title 2") != there || (err == nil) != there {
			t.Errorf("%s: the file has %s, %v", x.when, b, err)
		}
		steps = x.time
		l.ForgetCheck()
		if n := len(kit.ListBy(t, l)); n != 3 || len(l.Forgotten(ids)) > 0 {
			t.Errorf("%s: the next list has %d contexts, and leaves out %v", x.when, n, l.Forgotten(ids))
		}
	}
}

// TestListBesideRemoval: a context that is removed while a list runs is in the list as it was, or is not, at whichever step.
func TestListBesideRemoval(t *testing.T) {
	left := 0 // lists without it
	for at, last := 1, false; !last; at++ {
		s, dir := kit.NewStore(t)
		stays, goes := labelled(t, s, engine.Metadata{Title: "stays"}, nil), labelled(t, s, engine.Metadata{Title: "goes"}, nil)
		step := 0
		disk := &toldFS{kit.Must[vfs.FS](t)(vfs.OS(dir)), func(string, string) {
			if step++; step == at {
				kit.Check(t, os.Rename(filepath.Join(dir, goes.String()), filepath.Join(t.TempDir(), "gone")))
			}
		}}
		beside := kit.Must[*engine.Store](t)(kit.Open(dir, engine.WithFS(disk)))
		before := step
		rows := kit.ListBy(t, listing.New(beside))
		last = step < at
		if before < at && !slices.ContainsFunc(rows, func(row listing.Summary) bool { return row.ID == goes }) {
			left++
		}
		for _, row := range rows {
			if row.Problem != nil || row.ID != stays && row.ID != goes {
				t.Errorf("removed before step %d of %d: %s: %v", at-before, step-before, row.Title, row.Problem)
			}
		}
		kit.Check(t, beside.Close())
	}
	if left == 0 {
		t.Error("it was in every list")
	}
}

// TestForgetInMemory: a Lister drops what it keeps of a forgotten context that the file does not have, even if a list
// leaves that context out.
func TestForgetInMemory(t *testing.T) {
	s, dir := kit.NewStore(t)
	l := listing.New(s)
	var ids []uuid.UUID
	for range 2 * listing.RowsPerRead {
		ids = append(ids, labelled(t, s, engine.Metadata{}, nil))
	}
	old(t, dir, ids...)
	kit.ListBy(t, l)
	c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{Title: "other"}))
	kit.Check(t, c.Rename(t.Context(), engine.MainBranch, "secret"), c.Flush(t.Context()))
	old(t, dir, c.ID())
	kit.ListBy(t, l)
	has := string(kit.Must[[]byte](t)(os.ReadFile(filepath.Join(dir, listing.SummariesFile))))
	if !l.Holds("secret") || strings.Contains(has, "secret") {
		t.Fatalf("in memory: %v, in the file: %v", l.Holds("secret"), strings.Contains(has, "secret"))
	}
	kit.Check(t, c.Rename(t.Context(), "secret", engine.MainBranch), c.Close())
	kit.Check(t, listing.Forget(s, c.ID()))
	if got, _ := listed(t, l, listing.ListOptions{Title: "none"}); got != "" || l.Holds("secret") {
		t.Errorf("a list has %q; in memory: %v", got, l.Holds("secret"))
	}
}
