package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/ctxdirtest"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// device is a store in memory with what its user did.
type device struct {
	t    *testing.T
	name string
	s    *ctxdir.Store
	f    *Folder
}

func newDevice(t *testing.T, name string, opts ...ctxdir.Options) *device {
	s := ctxdirtest.New(t, opts...)
	disk := crashfs.New()
	return &device{t, name, s, &Folder{s: s, disk: func() (vfs.FS, error) { return disk.Sub(".") }}}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (d *device) create(m ctxdir.Metadata) uuid.UUID {
	d.t.Helper()
	c := must[*ctxdir.Context](d.t)(d.s.Create(d.t.Context(), m))
	defer c.Close()
	return c.ID()
}

func (d *device) use(id uuid.UUID, f func(c *ctxdir.Context) error) {
	d.t.Helper()
	if err := d.s.Use(d.t.Context(), id, f); err != nil {
		d.t.Fatal(err)
	}
}

func (d *device) append(id uuid.UUID, branch string, texts ...string) (ids []uuid.UUID) {
	d.t.Helper()
	d.use(id, func(c *ctxdir.Context) error {
		b, err := c.Branch(branch)
		for _, text := range texts {
			if err != nil {
				return err
			}
			var r ctxdir.AppendResult
			r, err = b.Append(d.t.Context(), ctxdir.Draft{Body: said(text)})
			ids = append(ids, r.ID)
		}
		return err
	})
	return ids
}

func said(text string) json.RawMessage {
	b, _ := json.Marshal(text)
	return json.RawMessage(`{"role":"user","content":` + string(b) + `}`)
}

func (d *device) sync(with Peer, o Options) []Synced {
	d.t.Helper()
	var all []Synced
	o.Host = d.name
	o.Report = func(s Synced) { all = append(all, s) }
	if _, err := Sync(d.t.Context(), d.f, with, o); err != nil {
		d.t.Fatal(err)
	}
	for _, s := range all {
		if s.Err != nil {
			d.t.Fatalf("%s: %v", s.ID, s.Err)
		}
	}
	return all
}

// shown is all that a store shows: a line for each branch, message and member.
func (d *device) shown() (all []string) {
	d.t.Helper()
	for id, err := range d.s.IDs() {
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, d.context(id)...)
	}
	return all
}

func (d *device) context(id uuid.UUID) (all []string) {
	d.t.Helper()
	ctx := d.t.Context()
	d.use(id, func(c *ctxdir.Context) error {
		m, err := metaOf(ctx, c)
		if err != nil {
			return err
		}
		sums := m.members()
		for k, v := range sums {
			all = append(all, fmt.Sprintf("%s %q %s", id, k, v))
		}
		slices.Sort(all)
		var branches []string
		for _, b := range m.Branches {
			of, err := c.Branch(b.Name)
			if err != nil {
				return err
			}
			lines := []string{fmt.Sprintf("%s branch %s", id, b.Name)}
			for m, err := range of.Messages(ctx, 0, ctxdir.End) {
				if err != nil {
					return err
				}
				body, err := m.Body(ctx)
				switch {
				case errors.Is(m.Unavailable, ctxdir.ErrErased):
					body = json.RawMessage("erased")
				case m.Unavailable != nil:
					body = json.RawMessage("lost")
				case err != nil:
					return err
				}
				lines = append(lines, fmt.Sprintf("%s %d %s %s", b.Name, m.Position, m.ID, body))
			}
			branches = append(branches, strings.Join(lines, "\n"))
		}
		slices.Sort(branches)
		all = append(all, branches...)
		return nil
	})
	return all
}

func same(t *testing.T, a, b *device) {
	t.Helper()
	x, y := strings.Split(strings.Join(a.shown(), "\n"), "\n"), strings.Split(strings.Join(b.shown(), "\n"), "\n")
	var only []string
	for _, line := range x {
		if !slices.Contains(y, line) {
			only = append(only, a.name+": "+line)
		}
	}
	for _, line := range y {
		if !slices.Contains(x, line) {
			only = append(only, b.name+": "+line)
		}
	}
	if len(only) > 0 || len(x) != len(y) {
		t.Fatalf("%s and %s differ:\n%s", a.name, b.name, strings.Join(only, "\n"))
	}
}

// TestSync: what one side has, the other one has after it; both keep what they wrote; then nothing happens any more.
func TestSync(t *testing.T) {
	ctx := t.Context()
	a, b := newDevice(t, "ada"), newDevice(t, "bob", ctxdir.Options{TextThreshold: 100})
	id := a.create(ctxdir.Metadata{
		Title: "A walk", Labels: map[string]string{"project": "woods"}, Config: json.RawMessage(`{"model_id":"m","n":1.50e2}`),
		Branches: []ctxdir.BranchMetadata{{SystemPrompt: json.RawMessage(`"Be kind."`)}},
	})
	first := a.append(id, "main", "one", "two", strings.Repeat("a long text ", 3000), "four")
	odd := json.RawMessage(`{"role":"user","content":"a<b>&\u0000 \u2028","f":1.50e2,"k":1,"k":2,"n":12345678901234567890}`)
	a.use(id, func(c *ctxdir.Context) error {
		_, err := c.Active().Append(ctx, ctxdir.Draft{Body: odd, OriginID: "elsewhere", References: json.RawMessage(`[{"file":"x"}]`)})
		if err == nil {
			_, err = c.Active().Fork(ctx, "alt", 2)
		}
		return err
	})
	a.append(id, "alt", "three on alt")
	nothing := func() {
		t.Helper()
		for _, d := range []*device{a, b} {
			other := a
			if d == a {
				other = b
			}
			if got := d.sync(other.f, Options{}); len(got) > 0 {
				t.Errorf("%s syncs again: %+v", d.name, got)
			}
		}
	}
	if got := a.sync(b.f, Options{}); len(got) != 1 || got[0].Pushed != 6 || got[0].Pulled != 0 {
		t.Errorf("the first sync: %+v", got)
	}
	same(t, a, b)
	nothing()
	// One side goes on: appends, a fork, a rename, a rewind, labels, a replaced message.
	a.append(id, "main", "six")
	a.use(id, func(c *ctxdir.Context) error {
		alt, err := c.Branch("alt")
		if err == nil {
			_, err = alt.Rename(ctx, "other way")
		}
		if err == nil {
			_, err = c.Active().Fork(ctx, "third", 6)
		}
		if err == nil {
			err = c.Active().Replace(ctx, first[1], ctxdir.Draft{Body: said("two, better")}, ctxdir.WriteOptions{Shared: true})
		}
		if err == nil {
			err = c.Update(ctx, func(m *ctxdir.Metadata) error {
				m.Labels["user"], m.State = "ada", json.RawMessage(`{"x":1}`)
				return nil
			})
		}
		return err
	})
	if got := b.sync(a.f, Options{}); len(got) != 1 || got[0].Pulled != 2 || got[0].Pushed != 0 {
		t.Errorf("after a went on: %+v", got)
	}
	same(t, a, b)
	nothing()
	// Both go on, on different members and branches.
	a.append(id, "main", "left")
	b.append(id, "third", "right")
	b.use(id, func(c *ctxdir.Context) error {
		return c.Update(ctx, func(m *ctxdir.Metadata) error { m.Title = "A long walk"; return nil })
	})
	a.sync(b.f, Options{})
	same(t, a, b)
	nothing()
	// Both go on, on one branch.
	a.append(id, "main", "left 1", "left 2")
	b.append(id, "main", "right 1")
	if got := a.sync(b.f, Options{}); len(got) != 1 || !slices.Equal(got[0].Diverged, []string{"main~ada"}) {
		t.Errorf("a divergence: %+v", got)
	}
	same(t, a, b)
	nothing()
	if n := len(a.branches(id)); n != 4 {
		t.Errorf("%d branches", n)
	}
	// A rewind, a removed branch, an erased message.
	a.use(id, func(c *ctxdir.Context) error {
		third, err := c.Branch("third")
		if err == nil {
			err = third.Remove(ctx)
		}
		if err == nil {
			err = c.Active().Rewind(ctx, 3)
		}
		return err
	})
	must[[]ctxdir.Erased](t)(a.s.Erase(ctx, id, first[:1], ctxdir.EraseOptions{Shared: true}))
	if got := b.sync(a.f, Options{}); len(got) != 1 || got[0].Erased != 1 {
		t.Errorf("an erase: %+v", got)
	}
	same(t, a, b)
	nothing()
	if text := strings.Join(b.shown(), "\n"); !strings.Contains(text, "erased") || strings.Contains(text, `"one"`) {
		t.Errorf("not erased:\n%s", text)
	}
	// A removed context goes to the trash.
	must[ctxdir.TrashItem](t)(a.s.Remove(ctx, id))
	if got := a.sync(b.f, Options{}); len(got) != 1 || !got[0].Removed {
		t.Errorf("a removal: %+v", got)
	}
	same(t, a, b)
	nothing()
}

func (d *device) branches(id uuid.UUID) (names []string) {
	d.use(id, func(c *ctxdir.Context) error {
		for _, b := range c.Metadata().Branches {
			names = append(names, b.Name)
		}
		return nil
	})
	return names
}

// TestFolders: between two stores in folders, a context that one of them lacks is copied as a whole, with its segments.
func TestFolders(t *testing.T) {
	ctx := t.Context()
	open := func(name string) *device {
		s := must[*ctxdir.Store](t)(ctxdir.Init(filepath.Join(t.TempDir(), name)))
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return &device{t, name, s, NewFolder(s)}
	}
	a, b := open("ada"), open("bob")
	id := a.create(ctxdir.Metadata{Title: "A walk"})
	a.append(id, "main", "one", "two", strings.Repeat("a payload ", 5000))
	a.use(id, func(c *ctxdir.Context) error { return c.Admin().Seal(ctx) })
	a.append(id, "main", "four")
	empty := a.create(ctxdir.Metadata{Title: "nothing said"})
	if got := a.sync(b.f, Options{}); len(got) != 2 || got[0].Pushed+got[1].Pushed != 4 {
		t.Errorf("%+v", got)
	}
	same(t, a, b)
	if segments, _ := filepath.Glob(filepath.Join(b.s.Info().Path, id.String(), "segments", "*.zst")); len(segments) == 0 {
		t.Error("no segment was copied")
	}
	for range 2 {
		if got := slices.Concat(a.sync(b.f, Options{}), b.sync(a.f, Options{})); len(got) != 0 {
			t.Errorf("again: %+v", got)
		}
		b.append(empty, "main", "said there")
		if got := a.sync(b.f, Options{}); len(got) != 1 || got[0].Pulled != 1 {
			t.Errorf("%+v", got)
		}
		same(t, a, b)
	}
	// An edit by hand travels.
	if err := a.s.Use(ctx, id, func(c *ctxdir.Context) error { return c.Flush(ctx) }); err != nil {
		t.Fatal(err)
	}
	files := must[[]string](t)(filepath.Glob(filepath.Join(a.s.Info().Path, id.String(), "messages", "branch-main", "*")))
	path := files[0]
	text := must[[]byte](t)(os.ReadFile(path))
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"one"`), []byte(`"one, edited"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	a.sync(b.f, Options{})
	same(t, a, b)
	if !strings.Contains(strings.Join(b.shown(), "\n"), "one, edited") {
		t.Error("the edit did not travel")
	}
}
