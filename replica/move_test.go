package replica

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// in opens a store in a folder of a disk in memory.
func in(t *testing.T, disk *crashfs.FS, name string) (*device, error) {
	if err := disk.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	sub, err := disk.Sub(name)
	if err != nil {
		return nil, err
	}
	s, err := ctxdir.Init(name, knobs.Options(engine.WithFS(sub), engine.InOrder()))
	if err != nil {
		return nil, err
	}
	return &device{t, name, s, &Folder{s: s, disk: func() (vfs.FS, error) { return disk.Sub(name) }}}, nil
}

// TestMovePowerCut: wherever the power fails while a context moves, it is whole in one of the stores at least, and the next
// try ends the move.
func TestMovePowerCut(t *testing.T) {
	start := crashfs.New()
	a, b := must[*device](t)(in(t, start, "a")), must[*device](t)(in(t, start, "b"))
	id := a.create(ctxdir.Metadata{Title: "A walk"})
	a.append(id, "main", "one", "two", "three")
	a.use(id, func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(t.Context(), "alt", 2)
		return err
	})
	a.append(id, "alt", "three on alt")
	want := a.context(id)
	a.close()
	b.close()
	stride := 1
	if testing.Short() {
		stride = 13
	}
	cuts, again := 0, 0
	for k := 0; ; k += stride {
		disk := start.Clone()
		a, b := must[*device](t)(in(t, disk, "a")), must[*device](t)(in(t, disk, "b"))
		disk.CutAt(len(disk.Ops()) + k)
		_, err := Move(t.Context(), a.f, b.f, id)
		ended := !disk.PowerCut()
		if ended && err != nil {
			t.Fatal(err)
		}
		_, _ = a.s.Close(), b.s.Close()
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.Random(uint64(k))} {
			disk := disk.Crash(choice)
			a, b := must[*device](t)(in(t, disk, "a")), must[*device](t)(in(t, disk, "b"))
			if a.has(id) {
				again++
				if got := a.context(id); !slices.Equal(got, want) {
					t.Errorf("cut %d, %v: the context shows %q, not %q", k, choice, got, want)
				}
				if _, err := Move(t.Context(), a.f, b.f, id); err != nil {
					t.Errorf("cut %d, %v: %v", k, choice, err)
				}
			}
			if got := b.context(id); !slices.Equal(got, want) || a.has(id) {
				t.Errorf("cut %d, %v: the copy shows %q, not %q", k, choice, got, want)
			}
			for _, d := range []*device{a, b} {
				for f, err := range d.s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
					if err != nil || f.Severity == ctxdir.SeverityError {
						t.Errorf("cut %d, %v, %s: %+v, %v", k, choice, d.name, f, err)
					}
				}
				d.close()
			}
		}
		if cuts++; ended || t.Failed() {
			break
		}
	}
	t.Logf("%d cuts, %d moves begun again", cuts, again)
}

func (d *device) close() {
	d.t.Helper()
	if err := d.s.Close(); err != nil {
		d.t.Error(err)
	}
}

func (d *device) has(id uuid.UUID) bool {
	d.t.Helper()
	err := d.s.Use(d.t.Context(), id, func(*ctxdir.Context) error { return nil })
	if err != nil && !errors.Is(err, ctxdir.ErrNotExist) {
		d.t.Fatal(err)
	}
	return err == nil
}
