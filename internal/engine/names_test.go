//go:build linux

package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"golang.org/x/text/unicode/norm"
)

// upper gives files and folders names in upper case, as some file systems and copying programs do.
func (p *patient) upper(paths ...string) {
	p.t.Helper()
	for _, path := range paths {
		p.rename(path, strings.ToUpper(filepath.Base(path)))
	}
}

func (p *patient) rename(path, name string) {
	p.t.Helper()
	if to := filepath.Join(filepath.Dir(path), name); to != path {
		check(p.t, os.Rename(path, to))
	}
}

// upperAll is upper for everything below a folder.
func (p *patient) upperAll(dir string) {
	p.t.Helper()
	var all []string
	check(p.t, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if path != dir {
			all = append(all, path)
		}
		return err
	}))
	slices.Reverse(all)
	p.upper(all...)
}

// TestNames: what bears its name in another spelling is told of, gets the right name from a repair, and nothing is lost.
func TestNames(t *testing.T) {
	in := func(p *patient, names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, p.glob(name)...)
		}
		return paths
	}
	for name, x := range map[string]struct {
		do   func(p *patient)
		kind integrity.Kind
	}{
		"a message file":    {func(p *patient) { p.upper(p.main[5]) }, integrity.KindMisplaced},
		"all message files": {func(p *patient) { p.upper(p.main...) }, integrity.KindMisplaced},
		"the last ones":     {func(p *patient) { p.upper(p.main[38:]...) }, integrity.KindMisplaced},
		"mixed case": {func(p *patient) {
			p.rename(p.main[5], strings.TrimSuffix(filepath.Base(p.main[5]), ".json")+".Json")
		}, integrity.KindMisplaced},
		"a branch folder":     {func(p *patient) { p.upper(in(p, "messages/branch-main")...) }, integrity.KindName},
		"the messages folder": {func(p *patient) { p.upper(in(p, "messages")...) }, integrity.KindName},
		"metadata.json":       {func(p *patient) { p.upper(in(p, "metadata.json")...) }, integrity.KindName},
		"index.json":          {func(p *patient) { p.upper(in(p, "index.json")...) }, integrity.KindName},
		"index":               {func(p *patient) { p.upper(in(p, "index")...) }, integrity.KindName},
		"a row file":          {func(p *patient) { p.upper(in(p, "index/*.rows")...) }, integrity.KindName},
		"journals":            {func(p *patient) { p.upper(in(p, "journal-*")...) }, integrity.KindName},
		"everything":          {func(p *patient) { p.upperAll(p.dir) }, integrity.KindName},
		"a message file, no index": {func(p *patient) {
			p.upper(p.main[39])
			p.remove(in(p, "index*", "journal-*")...)
		}, integrity.KindIndex},
		"everything, no index": {func(p *patient) {
			p.remove(in(p, "index*", "journal-*")...)
			p.upperAll(p.dir)
		}, integrity.KindName},
		"the context's folder": {func(p *patient) { p.upper(p.dir) }, integrity.KindName},
		"the folder and everything in it": {func(p *patient) {
			p.upperAll(p.dir)
			p.upper(p.dir)
		}, integrity.KindName},
		"blobs":            {func(p *patient) { p.upper(filepath.Join(p.store.Path(), "blobs")) }, integrity.KindName},
		"all of the blobs": {func(p *patient) { p.upperAll(filepath.Join(p.store.Path(), "blobs")) }, integrity.KindName},
		"blobs, and a new one": {func(p *patient) {
			blobs := filepath.Join(p.store.Path(), "blobs")
			p.upperAll(blobs)
			p.upper(blobs)
			check(p.t, os.MkdirAll(filepath.Join(blobs, "ab"), 0o700))
			check(p.t, os.MkdirAll(filepath.Join(blobs, filepath.Base(filepath.Dir(filepath.Dir(p.blobs[0])))), 0o700))
		}, integrity.KindName},
	} {
		for _, second := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", journals there", false: ", files alone"}[second], func(t *testing.T) {
				t.Parallel()
				p := newPatient(t, second)
				x.do(p)
				found := p.check(true)
				if !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == x.kind }) {
					t.Errorf("no %s: %+v", x.kind, found)
				}
				before := tree(t, p.store.Path())
				if planned := p.repair(CheckOptions{DryRun: true}); len(planned) == 0 || tree(t, p.store.Path()) != before {
					t.Errorf("%d planned, or something was changed", len(planned))
				}
				p.repair(CheckOptions{})
				if found, lost := p.heal(CheckOptions{}); len(found) > 0 || lost > 0 {
					t.Errorf("%d are lost, found after the repair: %+v", lost, found)
				}
			})
		}
	}
}

// TestNamesShort: the message of a file whose name was cut short is where it belongs after a repair.
func TestNamesShort(t *testing.T) {
	for _, second := range []bool{true, false} {
		p := newPatient(t, second)
		p.rename(p.main[5], "0198C0~1.JSO")
		p.rename(p.main[30], "0198c0~12.jso")
		write(t, filepath.Join(filepath.Dir(p.main[5]), "notes~1.jso"), []byte("not ours"))
		found, lost := p.heal(CheckOptions{})
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == integrity.KindMisplaced }) || lost > 0 {
			t.Errorf("%d are lost, found %+v", lost, found)
		}
		if b := must[[]byte](t)(os.ReadFile(filepath.Join(filepath.Dir(p.main[5]), "notes~1.jso"))); string(b) != "not ours" {
			t.Errorf("%q", b)
		}
	}
}

// TestNamesOfPacks is TestNames for archived messages.
func TestNamesOfPacks(t *testing.T) {
	for name, do := range map[string]func(p *patient){
		"a pack":     func(p *patient) { p.upper(p.packs()...) },
		"archive":    func(p *patient) { p.upper(p.glob("archive")...) },
		"everything": func(p *patient) { p.upperAll(p.dir) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newArchived(t, "one pack")
			do(p)
			if found := p.check(false); !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == integrity.KindName }) {
				t.Errorf("found %+v", found)
			}
			p.repair(CheckOptions{})
			if found, lost := p.heal(CheckOptions{}); len(found) > 0 || lost > 0 {
				t.Errorf("%d are lost, found after the repair: %+v", lost, found)
			}
		})
	}
}

// TestNamesAdopted: a message that was never committed is taken in under whatever spelling of its name.
func TestNamesAdopted(t *testing.T) {
	p := newPatient(t, true)
	id := p.foreign("branch-main", 40)
	p.upper(filepath.Join(p.dir, "messages", "branch-main", id.String()+".json"))
	if found := p.check(false); len(found) != 1 || found[0].Kind != integrity.KindForeign {
		t.Errorf("found %+v", found)
	}
	p.repair(CheckOptions{Adopt: true})
	c := must[*Context](t)(p.store.Context(context.Background(), p.id))
	defer c.Close()
	if m := must[*Message](t)(c.Active().Message(context.Background(), id)); m.Unavailable != nil || m.Position != 40 {
		t.Errorf("at %d, unavailable %v", m.Position, m.Unavailable)
	}
	if found := p.check(true); len(found) > 0 {
		t.Errorf("after the repair: %+v", found)
	}
}

// TestNamesTaken: nothing takes the place of what bears the right name already, and what a file system takes for one file stays.
func TestNamesTaken(t *testing.T) {
	t.Run("message file", func(t *testing.T) {
		p := newPatient(t, true)
		other := filepath.Join(filepath.Dir(p.main[5]), strings.ToUpper(filepath.Base(p.main[5])))
		write(t, other, must[[]byte](t)(os.ReadFile(p.main[5])))
		found, lost := p.heal(CheckOptions{})
		if len(found) != 1 || found[0].Kind != integrity.KindDuplicate || lost > 0 {
			t.Errorf("%d are lost, found %+v", lost, found)
		}
	})
	t.Run("one file under both names", func(t *testing.T) { // as it looks where case does not count
		p := newPatient(t, true)
		check(t, os.Link(p.main[5], filepath.Join(filepath.Dir(p.main[5]), strings.ToUpper(filepath.Base(p.main[5])))))
		if found, lost := p.heal(CheckOptions{}); len(found) > 0 || lost > 0 {
			t.Errorf("%d are lost, found %+v", lost, found)
		}
	})
	t.Run("context", func(t *testing.T) {
		p := newPatient(t, true)
		other := filepath.Join(filepath.Dir(p.dir), strings.ToUpper(filepath.Base(p.dir)))
		check(t, os.CopyFS(other, os.DirFS(p.dir)))
		was := tree(t, other)
		if found := p.check(true); len(found) != 1 || found[0].Kind != integrity.KindName || found[0].Repairable {
			t.Errorf("found %+v", found)
		}
		if done := p.repair(CheckOptions{}); len(done) > 0 || tree(t, other) != was {
			t.Errorf("repaired %+v", done)
		}
	})
	t.Run("trash", func(t *testing.T) {
		ctx := context.Background()
		c, dir := newContext(t)
		fill(t, c.Active(), 3)
		must[Trashed](t)(c.store.Delete(ctx, c.ID()))
		trash := filepath.Join(filepath.Dir(dir), "trash")
		check(t, os.Rename(trash, filepath.Join(filepath.Dir(dir), "TRASH")))
		other := must[*Context](t)(c.store.Create(ctx, Metadata{}))
		must[Trashed](t)(c.store.Delete(ctx, other.ID()))
		p := &patient{t: t, store: c.store}
		if done := p.repair(CheckOptions{}); len(done) != 1 || done[0].Kind != integrity.KindName {
			t.Errorf("repaired %+v", done)
		}
		if found := trashOf(t, c.store, "context"); len(found) != 2 {
			t.Errorf("in the trash are %+v", found)
		}
		check(t, c.Close(), other.Close())
	})
}

// TestNamesComposed: a copy over a file system that takes names apart, or puts their characters together, has the same branches.
func TestNamesComposed(t *testing.T) {
	ctx := context.Background()
	const branch = "caf\u00e9"
	for name, form := range map[string]norm.Form{"taken apart": norm.NFD, "put together": norm.NFC} {
		t.Run(name, func(t *testing.T) {
			c, dir := newContext(t, withoutPause())
			b := must[*Branch](t)(c.NewBranch(ctx, map[norm.Form]string{norm.NFD: branch, norm.NFC: norm.NFD.String(branch)}[form]))
			fill(t, b, 5)
			check(t, c.Fold(ctx), c.log.Exclusively(ctx, c.log.Retire))
			want := bodies(t, b)
			check(t, c.Close())
			p := &patient{t: t, store: c.store}
			p.rename(filepath.Join(dir, "messages", "branch-"+b.Name()), "branch-"+form.String(branch))
			if found := p.check(false); !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == integrity.KindName }) {
				t.Errorf("found %+v", found)
			}
			p.repair(CheckOptions{})
			if found := p.check(true); len(found) > 0 {
				t.Errorf("after the repair: %+v", found)
			}
			again := must[*Context](t)(c.store.Context(ctx, c.ID()))
			defer again.Close()
			if got := bodies(t, must[*Branch](t)(again.Branch(b.Name()))); !slices.Equal(got, want) {
				t.Errorf("%q, wanted %q", got, want)
			}
		})
	}
}

// TestNamesErased: an erase finds the file of a message under a name in upper case.
func TestNamesErased(t *testing.T) {
	ctx := context.Background()
	p := newPatient(t, true)
	copied := filepath.Join(p.dir, "messages", "branch-alt", strings.ToUpper(filepath.Base(p.main[30])))
	write(t, copied, must[[]byte](t)(os.ReadFile(p.main[30])))
	for _, err := range p.store.Erase(ctx, p.id, p.ids(30), EraseOptions{}) {
		check(t, err)
	}
	if _, err := os.Lstat(copied); err == nil {
		t.Error("a copy is left")
	}
}
