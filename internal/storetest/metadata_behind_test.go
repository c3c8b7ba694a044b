package storetest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

func title(text string) func(*engine.Metadata) error {
	return func(m *engine.Metadata) error { m.Title = text; return nil }
}

// titleOnDisk returns the title that metadata.json shows.
func titleOnDisk(t *testing.T, disk *crashfs.FS, c *engine.Context) string {
	t.Helper()
	var m struct{ Title string }
	kit.Check(t, json.Unmarshal(kit.Must[[]byte](t)(vfs.ReadFile(disk, c.ID().String()+"/metadata.json", 1<<20)), &m))
	return m.Title
}

// TestMetadataFollows: metadata.json follows its commits within the delay of a burst, once for all of them.
func TestMetadataFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := crashfs.New()
		s := behind(t, disk, engine.FilesBehind)
		c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{Title: "0"}))
		before := len(disk.Ops())
		for i := range 50 {
			kit.Check(t, c.Update(t.Context(), title(fmt.Sprint(i+1))))
		}
		if at := titleOnDisk(t, disk, c); at != "0" {
			t.Errorf("metadata.json shows title %q in the commit", at)
		}
		time.Sleep(20 * time.Millisecond)
		if synctest.Wait(); titleOnDisk(t, disk, c) != "50" {
			t.Errorf("metadata.json shows title %q after the delay", titleOnDisk(t, disk, c))
		}
		renames := 0
		for _, op := range disk.Ops()[before:] {
			if op.Kind == crashfs.KindRename {
				renames++
			}
		}
		if renames != 1 {
			t.Errorf("metadata.json was replaced %d times for 50 commits", renames)
		}
		kit.Check(t, c.Update(t.Context(), title("last")), c.Close())
		if at := titleOnDisk(t, disk, c); at != "last" {
			t.Errorf("metadata.json shows title %q after Close", at)
		}
		kit.Check(t, s.Close())
	})
}

// TestEditBeforeItsProjection: an edit by hand that comes between a commit and its metadata.json counts, beside the
// commit.
func TestEditBeforeItsProjection(t *testing.T) {
	s, dir := kit.NewStore(t, engine.WithFiles(engine.FilesHeld))
	c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{Title: "old"}))
	file := filepath.Join(dir, c.ID().String(), "metadata.json")
	var m engine.Object
	kit.Check(t, m.UnmarshalJSON(kit.Must[[]byte](t)(os.ReadFile(file))))
	_, err := c.NewBranch(t.Context(), "new")
	kit.Check(t, err)
	m.SetText("title", "edited")
	kit.Check(t, os.WriteFile(file, kit.Must[[]byte](t)(m.MarshalJSON()), 0o600), c.Flush(t.Context()))
	for _, step := range []func() error{
		func() error { return nil },
		func() error { return c.Refresh(t.Context()) },
		func() error { return c.Update(t.Context(), func(*engine.Metadata) error { return nil }) },
		func() error { return c.Flush(t.Context()) },
	} {
		kit.Check(t, step())
	}
	if m := c.Metadata(); m.Title != "edited" || len(m.Branches) != 2 {
		t.Errorf("title %q, %d branches; wanted the edit and the commit", m.Title, len(m.Branches))
	}
	kit.Check(t, c.Close())
}

// TestStaleMetadataOfAKilledProcess: a handle that goes on after a killed one replaces its stale metadata.json.
func TestStaleMetadataOfAKilledProcess(t *testing.T) {
	disk := crashfs.New()
	s := behind(t, disk, engine.FilesHeld)
	c := kit.Must[*engine.Context](t)(s.Create(t.Context(), engine.Metadata{Title: "old"}))
	kit.Check(t, c.Update(t.Context(), title("new")))
	if at := titleOnDisk(t, disk, c); at != "old" {
		t.Fatalf("metadata.json shows title %q in the commit", at)
	}
	next := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk), engine.WithFiles(engine.FilesHeld)))
	again := kit.Must[*engine.Context](t)(next.Context(t.Context(), c.ID()))
	if m := again.Metadata(); m.Title != "new" {
		t.Errorf("another handle shows title %q", m.Title)
	}
	kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{}`)})
	kit.Check(t, again.Close())
	if at := titleOnDisk(t, disk, c); at != "new" {
		t.Errorf("metadata.json shows title %q after the next writer", at)
	}
}
