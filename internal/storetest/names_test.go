//go:build linux

package storetest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"golang.org/x/text/unicode/norm"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestNames: what bears its name in another spelling is told of, gets the right name from a repair, and nothing is
// lost.
func TestNames(t *testing.T) {
	in := func(p *kit.Patient, names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, p.Glob(name)...)
		}
		return paths
	}
	for name, x := range map[string]struct {
		do   func(p *kit.Patient)
		kind integrity.Kind
	}{
		"a message file":    {func(p *kit.Patient) { p.Upper(p.Main[5]) }, integrity.KindMisplaced},
		"all message files": {func(p *kit.Patient) { p.Upper(p.Main...) }, integrity.KindMisplaced},
		"the last ones":     {func(p *kit.Patient) { p.Upper(p.Main[38:]...) }, integrity.KindMisplaced},
		"mixed case": {func(p *kit.Patient) {
			p.Rename(p.Main[5], strings.TrimSuffix(filepath.Base(p.Main[5]), ".json")+".Json")
		}, integrity.KindMisplaced},
		"a branch folder":     {func(p *kit.Patient) { p.Upper(in(p, "messages/branch-main")...) }, integrity.KindName},
		"the messages folder": {func(p *kit.Patient) { p.Upper(in(p, "messages")...) }, integrity.KindName},
		"metadata.json":       {func(p *kit.Patient) { p.Upper(in(p, "metadata.json")...) }, integrity.KindName},
		"index.json":          {func(p *kit.Patient) { p.Upper(in(p, "index.json")...) }, integrity.KindName},
		"index":               {func(p *kit.Patient) { p.Upper(in(p, "index")...) }, integrity.KindName},
		"a row file":          {func(p *kit.Patient) { p.Upper(in(p, "index/*.rows")...) }, integrity.KindName},
		"journals":            {func(p *kit.Patient) { p.Upper(in(p, "journal-*")...) }, integrity.KindName},
		"everything":          {func(p *kit.Patient) { p.UpperAll(p.Dir) }, integrity.KindName},
		"a message file, no index": {func(p *kit.Patient) {
			p.Upper(p.Main[39])
			p.Remove(in(p, "index*", "journal-*")...)
		}, integrity.KindIndex},
		"everything, no index": {func(p *kit.Patient) {
			p.Remove(in(p, "index*", "journal-*")...)
			p.UpperAll(p.Dir)
		}, integrity.KindName},
		"the context's folder": {func(p *kit.Patient) { p.Upper(p.Dir) }, integrity.KindName},
		"the folder and everything in it": {func(p *kit.Patient) {
			p.UpperAll(p.Dir)
			p.Upper(p.Dir)
		}, integrity.KindName},
		"blobs":            {func(p *kit.Patient) { p.Upper(filepath.Join(p.Store.Path(), "blobs")) }, integrity.KindName},
		"all of the blobs": {func(p *kit.Patient) { p.UpperAll(filepath.Join(p.Store.Path(), "blobs")) }, integrity.KindName},
		"blobs, and a new one": {func(p *kit.Patient) {
			blobs := filepath.Join(p.Store.Path(), "blobs")
			p.UpperAll(blobs)
			p.Upper(blobs)
			kit.Check(p.T, os.MkdirAll(filepath.Join(blobs, "ab"), 0o700))
			kit.Check(p.T, os.MkdirAll(filepath.Join(blobs, filepath.Base(filepath.Dir(filepath.Dir(p.Blobs[0])))), 0o700))
		}, integrity.KindName},
	} {
		for _, second := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", journals there", false: ", files alone"}[second], func(t *testing.T) {
				t.Parallel()
				p := kit.NewPatient(t, second)
				x.do(p)
				found := p.Check(true)
				if !slices.ContainsFunc(found, func(f engine.Finding) bool { return f.Kind == x.kind }) {
					t.Errorf("no %s: %+v", x.kind, found)
				}
				before := kit.Tree(t, p.Store.Path())
				if planned := p.Repair(engine.CheckOptions{DryRun: true}); len(planned) == 0 || kit.Tree(t, p.Store.Path()) != before {
					t.Errorf("%d planned, or something was changed", len(planned))
				}
				p.Repair(engine.CheckOptions{})
				if found, lost := p.Heal(engine.CheckOptions{}); len(found) > 0 || lost > 0 {
					t.Errorf("%d are lost, found after the repair: %+v", lost, found)
				}
			})
		}
	}
}

// TestNamesShort: the message of a file whose name was cut short is where it belongs after a repair.
func TestNamesShort(t *testing.T) {
	for _, second := range []bool{true, false} {
		p := kit.NewPatient(t, second)
		p.Rename(p.Main[5], "0198C0~1.JSO")
		p.Rename(p.Main[30], "0198c0~12.jso")
		kit.Write(t, filepath.Join(filepath.Dir(p.Main[5]), "notes~1.jso"), []byte("not ours"))
		found, lost := p.Heal(engine.CheckOptions{})
		if !slices.ContainsFunc(found, func(f engine.Finding) bool { return f.Kind == integrity.KindMisplaced }) || lost > 0 {
			t.Errorf("%d are lost, found %+v", lost, found)
		}
		if b := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(filepath.Dir(p.Main[5]), "notes~1.jso"))); string(b) != "not ours" {
			t.Errorf("%q", b)
		}
	}
}

// TestNamesOfPacks is TestNames for archived messages.
func TestNamesOfPacks(t *testing.T) {
	for name, do := range map[string]func(p *kit.Patient){
		"a pack":     func(p *kit.Patient) { p.Upper(p.Packs()...) },
		"archive":    func(p *kit.Patient) { p.Upper(p.Glob("archive")...) },
		"everything": func(p *kit.Patient) { p.UpperAll(p.Dir) },
	} {
		t.Run(name, func(t *testing.T) {
			p := kit.NewArchivedPatient(t, "one pack")
			do(p)
			if found := p.Check(false); !slices.ContainsFunc(found, func(f engine.Finding) bool { return f.Kind == integrity.KindName }) {
				t.Errorf("found %+v", found)
			}
			p.Repair(engine.CheckOptions{})
			if found, lost := p.Heal(engine.CheckOptions{}); len(found) > 0 || lost > 0 {
				t.Errorf("%d are lost, found after the repair: %+v", lost, found)
			}
		})
	}
}

// TestNamesAdopted: a message that was never committed is taken in under whatever spelling of its name.
func TestNamesAdopted(t *testing.T) {
	p := kit.NewPatient(t, true)
	id := p.Foreign("branch-main", 40)
	p.Upper(filepath.Join(p.Dir, "messages", "branch-main", id.String()+".json"))
	if found := p.Check(false); len(found) != 1 || found[0].Kind != integrity.KindForeign {
		t.Errorf("found %+v", found)
	}
	p.Repair(engine.CheckOptions{Adopt: true})
	c := kit.Must[*engine.Context](t)(p.Store.Context(context.Background(), p.ID))
	defer c.Close()
	if m := kit.Must[*engine.Message](t)(c.Active().Message(context.Background(), id)); m.Unavailable != nil || m.Position != 40 {
		t.Errorf("at %d, unavailable %v", m.Position, m.Unavailable)
	}
	if found := p.Check(true); len(found) > 0 {
		t.Errorf("after the repair: %+v", found)
	}
}

// TestNamesTaken: nothing takes the place of what bears the right name already, and what a file system takes for one
// file stays.
func TestNamesTaken(t *testing.T) {
	t.Run("message file", func(t *testing.T) {
		p := kit.NewPatient(t, true)
		other := filepath.Join(filepath.Dir(p.Main[5]), strings.ToUpper(filepath.Base(p.Main[5])))
		kit.Write(t, other, kit.Must[[]byte](t)(os.ReadFile(p.Main[5])))
		found, lost := p.Heal(engine.CheckOptions{})
		if len(found) != 1 || found[0].Kind != integrity.KindDuplicate || lost > 0 {
			t.Errorf("%d are lost, found %+v", lost, found)
		}
	})
	t.Run("one file under both names", func(t *testing.T) { // as it looks where case does not count
		p := kit.NewPatient(t, true)
		kit.Check(t, os.Link(p.Main[5], filepath.Join(filepath.Dir(p.Main[5]), strings.ToUpper(filepath.Base(p.Main[5])))))
		if found, lost := p.Heal(engine.CheckOptions{}); len(found) > 0 || lost > 0 {
			t.Errorf("%d are lost, found %+v", lost, found)
		}
	})
	t.Run("context", func(t *testing.T) {
		p := kit.NewPatient(t, true)
		other := filepath.Join(filepath.Dir(p.Dir), strings.ToUpper(filepath.Base(p.Dir)))
		kit.Check(t, os.CopyFS(other, os.DirFS(p.Dir)))
		was := kit.Tree(t, other)
		if found := p.Check(true); len(found) != 1 || found[0].Kind != integrity.KindName || found[0].Repairable {
			t.Errorf("found %+v", found)
		}
		if done := p.Repair(engine.CheckOptions{}); len(done) > 0 || kit.Tree(t, other) != was {
			t.Errorf("repaired %+v", done)
		}
	})
	t.Run("trash", func(t *testing.T) {
		ctx := context.Background()
		c, dir := kit.NewContext(t)
		kit.Fill(t, c.Active(), 3)
		kit.Must[engine.TrashItem](t)(c.Store.Delete(ctx, c.ID()))
		trash := filepath.Join(filepath.Dir(dir), "trash")
		kit.Check(t, os.Rename(trash, filepath.Join(filepath.Dir(dir), "TRASH")))
		other := kit.Must[*engine.Context](t)(c.Store.Create(ctx, engine.Metadata{}))
		kit.Must[engine.TrashItem](t)(c.Store.Delete(ctx, other.ID()))
		p := &kit.Patient{T: t, Store: c.Store}
		if done := p.Repair(engine.CheckOptions{}); len(done) != 1 || done[0].Kind != integrity.KindName {
			t.Errorf("repaired %+v", done)
		}
		if found := kit.TrashOf(t, c.Store, "context"); len(found) != 2 {
			t.Errorf("in the trash are %+v", found)
		}
		kit.Check(t, c.Close(), other.Close())
	})
}

// TestNamesComposed: a copy over a file system that takes names apart, or puts their characters together, has the same
// branches.
func TestNamesComposed(t *testing.T) {
	ctx := context.Background()
	const branch = "caf\u00e9"
	for name, form := range map[string]norm.Form{"taken apart": norm.NFD, "put together": norm.NFC} {
		t.Run(name, func(t *testing.T) {
			c, dir := kit.NewContext(t, engine.WithoutPause())
			b := kit.Must[*engine.Branch](t)(c.NewBranch(ctx, map[norm.Form]string{norm.NFD: branch, norm.NFC: norm.NFD.String(branch)}[form]))
			kit.Fill(t, b, 5)
			kit.Check(t, c.Fold(ctx), c.Log.Exclusively(ctx, c.Log.Retire))
			want := kit.Bodies(t, b)
			kit.Check(t, c.Close())
			p := &kit.Patient{T: t, Store: c.Store}
			p.Rename(filepath.Join(dir, "messages", "branch-"+b.Name()), "branch-"+form.String(branch))
			if found := p.Check(false); !slices.ContainsFunc(found, func(f engine.Finding) bool { return f.Kind == integrity.KindName }) {
				t.Errorf("found %+v", found)
			}
			p.Repair(engine.CheckOptions{})
			if found := p.Check(true); len(found) > 0 {
				t.Errorf("after the repair: %+v", found)
			}
			again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
			defer again.Close()
			if got := kit.Bodies(t, kit.Must[*engine.Branch](t)(again.Branch(b.Name()))); !slices.Equal(got, want) {
				t.Errorf("%q, wanted %q", got, want)
			}
		})
	}
}

// TestNamesErased: an erase finds the file of a message under a name in upper case.
func TestNamesErased(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, true)
	copied := filepath.Join(p.Dir, "messages", "branch-alt", strings.ToUpper(filepath.Base(p.Main[30])))
	kit.Write(t, copied, kit.Must[[]byte](t)(os.ReadFile(p.Main[30])))
	for _, err := range erase.Messages(ctx, p.Store, p.ID, p.IDs(30), erase.Options{}) {
		kit.Check(t, err)
	}
	if _, err := os.Lstat(copied); err == nil {
		t.Error("a copy is left")
	}
}
