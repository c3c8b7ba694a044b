package trash_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// rewound is a context on a disk whose branch alt shows message 9. Of the line that it had before, messages 1 to 4 are
// to be collected.
func rewound(t *testing.T) (*crashfs.FS, *engine.Store, *engine.Context) {
	ctx := context.Background()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithFoldBytes(-1)))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: kit.TestID(60000)}))
	b := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "alt"))
	for i := range 4 {
		kit.Append(t, b, engine.Draft{ID: kit.TestID(i + 1), Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	kit.Check(t, b.Rewind(ctx, 0))
	kit.Append(t, b, engine.Draft{ID: kit.TestID(9), Body: []byte(`{"n":9}`)})
	kit.Check(t, c.Fold(ctx))
	return disk, s, c
}

// uncleared is rewound after a collection that removed no message file. The item in trash is returned too.
func uncleared(t *testing.T) (disk *crashfs.FS, s *engine.Store, c *engine.Context, item string) {
	disk, s, c = rewound(t)
	stopped := errors.New("stopped")
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.Contains(o.Path, "/messages/") {
			return stopped
		}
		return nil
	})
	if err := kit.CollectAll(s, trash.DefaultGrace); !errors.Is(err, stopped) {
		t.Fatalf("the collection was to be stopped: %v", err)
	}
	disk.Fail(nil)
	kit.Check(t, c.Refresh(context.Background()))
	for x := range ctxfolder.EachTrash(c.Dir.FS, trash.OnlyFolders) {
		item = x.Path
	}
	return disk, s, c, item
}

// sound reports what a check finds, and whether the branch does not show what it did.
func sound(t *testing.T, s *engine.Store, branch string) {
	t.Helper()
	ctx := context.Background()
	for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
		t.Errorf("%s %s %s %v", f.Kind, f.Path, f.Detail, err)
	}
	c := kit.Must[*engine.Context](t)(s.Context(ctx, kit.TestID(60000)))
	defer c.Close()
	ms := kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(branch)))
	if len(ms) != 1 || ms[0].ID != kit.TestID(9) || ms[0].Unavailable != nil {
		t.Errorf("%d messages: %+v", len(ms), ms)
	}
}

func repairAll(t *testing.T, s *engine.Store, o engine.CheckOptions) (done []engine.Repaired) {
	t.Helper()
	for r, err := range s.Repair(context.Background(), nil, o) {
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, r)
	}
	return done
}

// TestClearRenamed: a collection is cut at every operation; then the branch whose folder the files are in is renamed.
// The next collection finds them.
func TestClearRenamed(t *testing.T) {
	ctx := context.Background()
	for k := 1; ; k++ {
		disk, s, c := rewound(t)
		disk.CutAt(len(disk.Ops()) + k)
		_ = kit.CollectAll(s, trash.DefaultGrace)
		if !disk.PowerCut() {
			return
		}
		s = kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk.Crash(crashfs.Keep)), engine.WithFoldBytes(-1)))
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		kit.Check(t, c.Rename(ctx, "alt", "beta"))
		kit.Check(t, c.Rename(ctx, "beta", "gamma"))
		kit.Must[*engine.Branch](t)(c.NewBranch(ctx, "alt"))
		kit.Check(t, kit.CollectAll(s, trash.DefaultGrace))
		sound(t, s, "gamma")
		if t.Failed() {
			t.Fatalf("cut at operation %d", k)
		}
	}
}

// TestClearRenaming: between the record that cuts the line and the removal of its files a rename is cut at every
// operation. Whoever comes first then, a collection or a repair, nothing that is shown is lost, and no file is left.
func TestClearRenaming(t *testing.T) {
	ctx := context.Background()
	for k := 1; ; k++ {
		disk, _, c, _ := uncleared(t)
		disk.CutAt(len(disk.Ops()) + k)
		err := c.Rename(ctx, "alt", "beta")
		if !disk.PowerCut() {
			kit.Check(t, err)
			return
		}
		for _, how := range []crashfs.Choice{crashfs.Keep, crashfs.Lose} {
			for _, repairs := range []bool{false, true} {
				s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk.Crash(how)), engine.WithFoldBytes(-1)))
				if repairs {
					repairAll(t, s, engine.CheckOptions{Adopt: true})
				}
				kit.Check(t, kit.CollectAll(s, trash.DefaultGrace))
				name := kit.Must[*engine.Context](t)(s.Context(ctx, c.ID())).Metadata().Branches[1].Name
				sound(t, s, name)
				if t.Failed() {
					t.Fatalf("cut at operation %d, %v, repair %v", k, how, repairs)
				}
			}
		}
	}
}

// TestClearWhileRenamed: the branch has got another name since the cut, and the folder gets its next one, or one that
// metadata.json has already, while the collection is about to look into it.
func TestClearWhileRenamed(t *testing.T) {
	ctx := context.Background()
	for _, begun := range []bool{false, true} {
		disk, s, c, _ := uncleared(t)
		kit.Check(t, c.Rename(ctx, "alt", "beta"))
		rename := func() error { return c.Rename(ctx, "beta", "gamma") }
		if begun {
			stopped := errors.New("stopped")
			disk.Fail(func(o crashfs.Op) error {
				if o.Kind == crashfs.KindRename && strings.HasSuffix(o.Path, "/messages/branch-beta") {
					return stopped
				}
				return nil
			})
			kit.Check(t, rename()) // it is committed; the next write renames the folder
			rename = func() error { return c.Write(ctx, func(*engine.Metadata) error { return nil }) }
		}
		var once sync.Once
		disk.Fail(func(o crashfs.Op) (err error) {
			if o.Kind == crashfs.KindReadDir && strings.HasSuffix(o.Path, "/messages/branch-beta") {
				once.Do(func() { err = rename() })
			}
			return err
		})
		kit.Check(t, kit.CollectAll(s, trash.DefaultGrace))
		disk.Fail(nil)
		sound(t, s, "gamma")
	}
}

// TestClearTorn: message files that a crash emptied or tore are removed with those that are whole; what holds another
// message stays, and so does the damaged file of a message of that id that counts.
func TestClearTorn(t *testing.T) {
	ctx := context.Background()
	_, s, c, _ := uncleared(t)
	file := func(n int) string { return c.Dir.MessagePath("branch-alt", kit.TestID(n)) }
	write := func(n int, content []byte) {
		kit.Check(t, c.Dir.FS.Remove(file(n)))
		kit.Check(t, vfs.WriteNew(c.Dir.FS, file(n), content))
	}
	whole := kit.Must[[]byte](t)(vfs.ReadFile(c.Dir.FS, file(3), ctxfolder.MaxMessage))
	write(2, nil)
	write(3, whole[:len(whole)/2])
	// The branch has message 4 again, in its line, and its file is damaged.
	kit.Check(t, c.Dir.FS.Remove(file(4)))
	alt := kit.Must[*engine.Branch](t)(c.Branch("alt"))
	kit.Append(t, alt, engine.Draft{ID: kit.TestID(4), Body: []byte(`{"n":3}`)})
	kit.Check(t, c.Fold(ctx))
	kit.Check(t, c.Log.Exclusively(ctx, c.Log.Retire))
	write(4, []byte("{"))
	kit.Check(t, kit.CollectAll(s, trash.DefaultGrace))
	var left []string
	for e, err := range c.Dir.FS.ReadDir(path.Dir(file(1))) {
		kit.Check(t, err)
		left = append(left, e.Name())
	}
	slices.Sort(left)
	if want := []string{path.Base(file(4)), path.Base(file(9))}; !slices.Equal(left, want) {
		t.Errorf("%v are left, not %v", left, want)
	}
}

// TestCollectedNotAdopted: the file of a message that was collected, there again, is a copy of what the trash has; a
// repair moves it there, and brings the message back for nobody. One of the same place with another id is a message
// that was never here.
func TestCollectedNotAdopted(t *testing.T) {
	ctx := context.Background()
	for _, cleared := range []bool{false, true} {
		_, s, c, _ := uncleared(t)
		copied := kit.Must[[]byte](t)(vfs.ReadFile(c.Dir.FS, c.Dir.MessagePath("branch-alt", kit.TestID(2)), ctxfolder.MaxMessage))
		if cleared {
			kit.Check(t, kit.CollectAll(s, trash.DefaultGrace))
			kit.Check(t, vfs.WriteNew(c.Dir.FS, c.Dir.MessagePath("branch-alt", kit.TestID(2)), copied))
			kit.Check(t, vfs.WriteNew(c.Dir.FS, c.Dir.MessagePath("branch-alt", kit.TestID(3)), nil))
		}
		other := strings.ReplaceAll(string(copied), kit.TestID(2).String(), kit.TestID(7).String())
		kit.Check(t, vfs.WriteNew(c.Dir.FS, c.Dir.MessagePath("branch-alt", kit.TestID(7)), []byte(other)))
		var kinds []integrity.Kind
		for r := range slices.Values(repairAll(t, s, engine.CheckOptions{Adopt: true})) {
			kinds = append(kinds, r.Kind)
		}
		want := []integrity.Kind{integrity.KindForeign}
		if cleared {
			want = []integrity.Kind{integrity.KindDuplicate, integrity.KindDuplicate, integrity.KindForeign}
		}
		slices.Sort(kinds)
		if !slices.Equal(kinds, want) {
			t.Errorf("cleared %v: %v, not %v", cleared, kinds, want)
		}
		kit.Check(t, kit.CollectAll(s, trash.DefaultGrace))
		sound(t, s, "alt")
		kit.Check(t, c.Refresh(ctx))
		for _, b := range c.Metadata().Branches {
			for _, m := range kit.Load(t, kit.Must[*engine.Branch](t)(c.Branch(b.Name))) {
				if m.ID == kit.TestID(2) || m.ID == kit.TestID(3) {
					t.Errorf("cleared %v: message %s is back on %q", cleared, m.ID, b.Name)
				}
			}
		}
	}
}
