package engine

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
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

// rewound is a context on a disk whose branch alt shows message 9. Of the line that it had before, messages 1 to 4 are to be collected.
func rewound(t *testing.T) (*crashfs.FS, *Store, *Context) {
	ctx := context.Background()
	disk := crashfs.New()
	s := must[*Store](t)(Init("disk", withFS(disk), WithFoldBytes(-1)))
	c := must[*Context](t)(s.Create(ctx, Metadata{ID: testID(60000)}))
	b := must[*Branch](t)(c.NewBranch(ctx, "alt"))
	for i := range 4 {
		must[Appended](t)(b.Append(ctx, Draft{ID: testID(i + 1), Body: fmt.Appendf(nil, `{"n":%d}`, i)}))
	}
	check(t, b.Rewind(ctx, 0))
	must[Appended](t)(b.Append(ctx, Draft{ID: testID(9), Body: []byte(`{"n":9}`)}))
	check(t, c.Fold(ctx))
	return disk, s, c
}

// uncleared is rewound after a collection that removed no message file. The item in trash is returned too.
func uncleared(t *testing.T) (disk *crashfs.FS, s *Store, c *Context, item string) {
	disk, s, c = rewound(t)
	stopped := errors.New("stopped")
	disk.Fail(func(o crashfs.Op) error {
		if o.Kind == crashfs.KindRemove && strings.Contains(o.Path, "/messages/") {
			return stopped
		}
		return nil
	})
	if err := collectAll(s, DefaultGrace); !errors.Is(err, stopped) {
		t.Fatalf("the collection was to be stopped: %v", err)
	}
	disk.Fail(nil)
	check(t, c.Refresh(context.Background()))
	for x := range ctxfolder.EachTrash(c.dir.FS, onlyFolders) {
		item = x.Path
	}
	return disk, s, c, item
}

// sound reports what a check finds, and whether the branch does not show what it did.
func sound(t *testing.T, s *Store, branch string) {
	t.Helper()
	ctx := context.Background()
	for f, err := range s.Check(ctx, nil, CheckOptions{ReadData: true}) {
		t.Errorf("%s %s %s %v", f.Kind, f.Path, f.Detail, err)
	}
	c := must[*Context](t)(s.Context(ctx, testID(60000)))
	defer c.Close()
	ms := must[[]*Message](t)(must[*Branch](t)(c.Branch(branch)).Load(ctx))
	if len(ms) != 1 || ms[0].ID != testID(9) || ms[0].Unavailable != nil {
		t.Errorf("%d messages: %+v", len(ms), ms)
	}
}

func repairAll(t *testing.T, s *Store, o CheckOptions) (done []Repaired) {
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
		_ = collectAll(s, DefaultGrace)
		if !disk.PowerCut() {
			return
		}
		s = must[*Store](t)(Open("disk", withFS(disk.Crash(crashfs.Keep)), WithFoldBytes(-1)))
		c = must[*Context](t)(s.Context(ctx, c.ID()))
		check(t, c.Rename(ctx, "alt", "beta"))
		check(t, c.Rename(ctx, "beta", "gamma"))
		must[*Branch](t)(c.NewBranch(ctx, "alt"))
		check(t, collectAll(s, DefaultGrace))
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
			check(t, err)
			return
		}
		for _, how := range []crashfs.Choice{crashfs.Keep, crashfs.Lose} {
			for _, repairs := range []bool{false, true} {
				s := must[*Store](t)(Open("disk", withFS(disk.Crash(how)), WithFoldBytes(-1)))
				if repairs {
					repairAll(t, s, CheckOptions{Adopt: true})
				}
				check(t, collectAll(s, DefaultGrace))
				name := must[*Context](t)(s.Context(ctx, c.ID())).Metadata().Branches[1].Name
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
		check(t, c.Rename(ctx, "alt", "beta"))
		rename := func() error { return c.Rename(ctx, "beta", "gamma") }
		if begun {
			stopped := errors.New("stopped")
			disk.Fail(func(o crashfs.Op) error {
				if o.Kind == crashfs.KindRename && strings.HasSuffix(o.Path, "/messages/branch-beta") {
					return stopped
				}
				return nil
			})
			if err := rename(); !errors.Is(err, stopped) {
				t.Fatal(err)
			}
			rename = func() error { return c.write(ctx, func(*Metadata) error { return nil }) }
		}
		var once sync.Once
		disk.Fail(func(o crashfs.Op) (err error) {
			if o.Kind == crashfs.KindReadDir && strings.HasSuffix(o.Path, "/messages/branch-beta") {
				once.Do(func() { err = rename() })
			}
			return err
		})
		check(t, collectAll(s, DefaultGrace))
		disk.Fail(nil)
		sound(t, s, "gamma")
	}
}

// TestClearTorn: message files that a crash emptied or tore are removed with those that are whole; what holds another
// message stays, and so does the damaged file of a message of that id that counts.
func TestClearTorn(t *testing.T) {
	ctx := context.Background()
	_, s, c, _ := uncleared(t)
	file := func(n int) string { return c.dir.MessagePath("branch-alt", testID(n)) }
	write := func(n int, content []byte) {
		check(t, c.dir.FS.Remove(file(n)))
		check(t, vfs.WriteNew(c.dir.FS, file(n), content))
	}
	whole := must[[]byte](t)(vfs.ReadFile(c.dir.FS, file(3), ctxfolder.MaxMessage))
	write(2, nil)
	write(3, whole[:len(whole)/2])
	// The branch has message 4 again, in its line, and its file is damaged.
	check(t, c.dir.FS.Remove(file(4)))
	alt := must[*Branch](t)(c.Branch("alt"))
	must[Appended](t)(alt.Append(ctx, Draft{ID: testID(4), Body: []byte(`{"n":3}`)}))
	check(t, c.Fold(ctx))
	check(t, c.log.Exclusively(ctx, c.log.Retire))
	write(4, []byte("{"))
	check(t, collectAll(s, DefaultGrace))
	var left []string
	for e, err := range c.dir.FS.ReadDir(path.Dir(file(1))) {
		check(t, err)
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
		copied := must[[]byte](t)(vfs.ReadFile(c.dir.FS, c.dir.MessagePath("branch-alt", testID(2)), ctxfolder.MaxMessage))
		if cleared {
			check(t, collectAll(s, DefaultGrace))
			check(t, vfs.WriteNew(c.dir.FS, c.dir.MessagePath("branch-alt", testID(2)), copied))
			check(t, vfs.WriteNew(c.dir.FS, c.dir.MessagePath("branch-alt", testID(3)), nil))
		}
		other := strings.ReplaceAll(string(copied), testID(2).String(), testID(7).String())
		check(t, vfs.WriteNew(c.dir.FS, c.dir.MessagePath("branch-alt", testID(7)), []byte(other)))
		var kinds []integrity.Kind
		for r := range slices.Values(repairAll(t, s, CheckOptions{Adopt: true})) {
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
		check(t, collectAll(s, DefaultGrace))
		sound(t, s, "alt")
		check(t, c.Refresh(ctx))
		for _, b := range c.Metadata().Branches {
			for _, m := range must[[]*Message](t)(must[*Branch](t)(c.Branch(b.Name)).Load(ctx)) {
				if m.ID == testID(2) || m.ID == testID(3) {
					t.Errorf("cleared %v: message %s is back on %q", cleared, m.ID, b.Name)
				}
			}
		}
	}
}
