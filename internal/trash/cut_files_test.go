package trash_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// rewound is a context on a disk whose branch alt shows message 9. The line that it had before has messages 1 to 4.
func rewound(t *testing.T) (*crashfs.FS, *engine.Store, *engine.Context) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	b := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "alt"))
	for i := range 4 {
		kit.Append(t, b, engine.Draft{ID: kit.TestID(i + 1), Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	kit.Check(t, b.Rewind(ctx, 0))
	kit.Append(t, b, engine.Draft{ID: kit.TestID(9), Body: []byte(`{"n":9}`)})
	kit.Check(t, c.Seal(ctx))
	return disk, s, c
}

// halfPurged is rewound after a purge that removed no message file.
func halfPurged(t *testing.T) (disk *crashfs.FS, s *engine.Store, c *engine.Context) {
	disk, s, c = rewound(t)
	stopped := errors.New("stopped")
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.Contains(o.Path, "/messages/") {
			return stopped
		}
		return nil
	})
	if err := kit.CollectAll(s, 0); !errors.Is(err, stopped) {
		t.Fatalf("the purge was to be stopped: %v", err)
	}
	disk.Fail(nil)
	kit.Check(t, c.Refresh(context.Background()))
	if items := kit.TrashOf(t, s, "line"); len(items) > 0 {
		t.Errorf("a line is listed while it is purged: %+v", items)
	}
	return disk, s, c
}

// TestPurgeOfArchivedBesideFiles purges an archived line whose message files came back: an archive stopped before it had
// removed them, or a power cut undid that.
func TestPurgeOfArchivedBesideFiles(t *testing.T) {
	ctx := context.Background()
	disk, s, c := rewound(t)
	defer s.Close()
	stopped := errors.New("stopped")
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.Contains(o.Path, "/messages/") {
			return stopped
		}
		return nil
	})
	if _, err := kit.Archive(ctx, c, archiving.Options{}); !errors.Is(err, stopped) {
		t.Fatalf("the archive was to be stopped: %v", err)
	}
	disk.Fail(nil)
	kit.Check(t, c.Refresh(ctx))
	kit.Check(t, kit.CollectAll(s, 0))
	gone(t, c, "branch-alt")
	sound(t, s, "alt")
}

// sound reports what a check finds, and whether the branch does not show what it did.
func sound(t *testing.T, s *engine.Store, branch string) {
	t.Helper()
	ctx := context.Background()
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		t.Errorf("%s %s %s %v", f.Kind, f.Path, f.Detail, err)
	}
	c := kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000)))
	defer c.Close()
	ms := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(branch)))
	if len(ms) != 1 || ms[0].ID != kit.TestID(9) || ms[0].Unavailable != nil {
		t.Errorf("%d messages: %+v", len(ms), ms)
	}
}

func repairAll(t *testing.T, s *engine.Store, o checking.Options) (done []integrity.Repaired) {
	t.Helper()
	for r, err := range checking.Repair(context.Background(), s, nil, o) {
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, r)
	}
	return done
}

// TestClearRenamed: a purge is cut at every operation; then the branch whose folder has the files is renamed. The next
// purge finds them.
func TestClearRenamed(t *testing.T) {
	ctx := context.Background()
	for k := 1; ; k++ {
		disk, s, c := rewound(t)
		disk.CutAt(len(disk.Ops()) + k)
		_ = kit.CollectAll(s, 0)
		if !disk.PowerCut() {
			return
		}
		s = kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk.Crash(crashfs.Keep)), engine.WithSealBytes(-1)))
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		kit.Check(t, c.Rename(ctx, "alt", "beta"))
		kit.Check(t, c.Rename(ctx, "beta", "gamma"))
		kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "alt"))
		kit.Check(t, kit.CollectAll(s, 0))
		sound(t, s, "gamma")
		if t.Failed() {
			t.Fatalf("cut at operation %d", k)
		}
	}
}

// TestClearTorn: message files that a crash emptied or tore go like the whole ones. The file of the line that the branch
// has now stays.
func TestClearTorn(t *testing.T) {
	_, s, c := rewound(t)
	file := func(n int) string { return c.Dir.MessagePath("branch-alt", kit.TestID(n)) }
	write := func(n int, content []byte) {
		kit.Check(t, c.Dir.FS.Remove(file(n)))
		kit.Check(t, vfs.WriteNew(c.Dir.FS, file(n), content))
	}
	whole := kit.Must[[]byte](t)(vfs.ReadFile(c.Dir.FS, file(3), ctxfolder.MaxMessage))
	write(2, nil)
	write(3, whole[:len(whole)/2])
	own := c.Dir.MessagePath("branch-alt~2", kit.TestID(9))
	kit.Check(t, c.Dir.FS.Remove(own))
	kit.Check(t, vfs.WriteNew(c.Dir.FS, own, []byte("{")))
	kit.Check(t, kit.CollectAll(s, 1))
	gone(t, c, "branch-alt")
	if _, err := c.Dir.FS.Lstat(own); err != nil {
		t.Error(err)
	}
	if items := kit.TrashOf(t, s, ""); len(items) > 0 {
		t.Errorf("%+v", items)
	}
}

// TestPurgedNotAdopted: the file that an interrupted purge left is not foreign: a repair brings it back on no branch,
// and the next purge removes it.
func TestPurgedNotAdopted(t *testing.T) {
	ctx := context.Background()
	_, s, c := halfPurged(t)
	if done := repairAll(t, s, checking.Options{Adopt: true}); len(done) > 0 {
		t.Errorf("%+v", done)
	}
	kit.Check(t, kit.CollectAll(s, trash.DefaultGrace))
	sound(t, s, "alt")
	kit.Check(t, c.Refresh(ctx))
	if m := c.Metadata(); len(m.Branches) != 2 || len(m.Lines) != 2 || len(m.Removed) != 0 {
		t.Errorf("%+v", m)
	}
	gone(t, c, "branch-alt")
}

// gone reports a folder of messages that is still there.
func gone(t *testing.T, c *engine.Context, folder string) {
	t.Helper()
	if _, err := c.Dir.FS.Lstat(ctxfolder.Messages + "/" + folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", folder, err)
	}
}

// keepingFS saves the logs and segments that are removed.
type keepingFS struct {
	vfs.FS
	saved map[string][]byte
}

func (f *keepingFS) Sub(name string) (vfs.FS, error) {
	sub, err := f.FS.Sub(name)
	return &keepingFS{sub, f.saved}, err
}

func (f *keepingFS) Remove(name string) error {
	_, log := journal.ParseName(name)
	if _, segment := archive.ParseName(path.Base(name)); log || segment {
		if b, err := vfs.ReadFile(f.FS, name, 1<<20); err == nil {
			f.saved[name] = b
		}
	}
	return f.FS.Remove(name)
}

// TestPurgedComesBack: logs and segments whose removal a crash undid have messages that were purged since. What took their
// place counts, and the next seal removes them.
func TestPurgedComesBack(t *testing.T) {
	ctx := context.Background()
	disk := crashfs.New()
	f := &keepingFS{disk, map[string][]byte{}}
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(f), engine.WithSealBytes(-1)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	kit.Fill(t, c.Active(), 2)
	alt := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "alt"))
	kit.Append(t, alt, engine.Draft{Body: kit.Secret(10)})
	kit.Check(t, c.Seal(ctx))
	kit.Append(t, alt, engine.Draft{Body: kit.Secret(10)})
	kit.Check(t, c.Remove(ctx, "alt"), kit.CollectAll(s, 0), c.Refresh(ctx))
	for name, content := range f.saved {
		kit.Check(t, vfs.WriteNew(disk, c.ID().String()+"/"+name, content))
	}
	if found := kit.Must[[]string](t)(kit.FilesWithCanary(disk)); len(found) < 3 {
		t.Errorf("the canary came back in %v", found)
	}
	kit.NothingFound(t, "with the old files", s, checking.Options{ReadData: true})
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	if n := kit.Must[int64](t)(c.Active().Len(ctx)); n != 2 || len(c.Metadata().Lines) != 1 {
		t.Errorf("%d messages, %+v", n, c.Metadata().Lines)
	}
	kit.Check(t, c.Seal(ctx))
	if found := kit.Must[[]string](t)(kit.FilesWithCanary(disk)); len(found) > 0 {
		t.Errorf("the canary is in %v", found)
	}
	kit.Check(t, c.Close(), s.Close())
}
