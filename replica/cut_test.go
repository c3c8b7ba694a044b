package replica

import (
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// onDisk opens a store on a disk in memory.
func onDisk(t *testing.T, name string, disk *crashfs.FS) (*device, error) {
	s, err := ctxdir.Init("memory", knobs.Options(engine.WithFS(disk), engine.InOrder()))
	if err != nil {
		return nil, err
	}
	return &device{t, name, s, &Folder{s: s, disk: func() (vfs.FS, error) { return disk.Sub(".") }}}, nil
}

// TestPowerCut: wherever the power fails during a sync, the next run ends in the same state, and nothing is half there.
func TestPowerCut(t *testing.T) {
	peer := newDevice(t, "peer")
	start := crashfs.New()
	here := must[*device](t)(onDisk(t, "here", start))
	id := here.create(ctxdir.Metadata{Title: "A walk"})
	ids := here.append(id, "main", "one", "two", "three")
	here.sync(peer.f, Options{})
	// What the sync has to do: a divergence, a new branch, a replaced and an erased message, metadata, a new context.
	peer.append(id, "main", "four there", strings.Repeat("a payload ", 4000))
	peer.use(id, func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(t.Context(), "alt", 2)
		if err == nil {
			err = c.Active().Replace(t.Context(), ids[2], ctxdir.Draft{Body: said("three, better")}, ctxdir.WriteOptions{})
		}
		if err == nil {
			err = c.Update(t.Context(), func(m *ctxdir.Metadata) error { m.Title = "A long walk"; return nil })
		}
		return err
	})
	peer.append(id, "alt", "three on alt")
	peer.append(peer.create(ctxdir.Metadata{Title: "Another"}), "main", "first")
	must[[]ctxdir.Erased](t)(peer.s.Erase(t.Context(), id, ids[:1], ctxdir.EraseOptions{Shared: true}))
	here.append(id, "main", "four here")
	if err := here.s.Close(); err != nil {
		t.Fatal(err)
	}
	stride := 1
	if testing.Short() {
		stride = 17
	}
	cuts := 0
	for k := 0; ; k += stride {
		disk := start.Clone()
		d, err := onDisk(t, "here", disk)
		if err != nil {
			t.Fatal(err)
		}
		disk.CutAt(len(disk.Ops()) + k)
		_, err = Sync(t.Context(), d.f, peer.f, Options{Pull: true, Host: "here"})
		ended := !disk.PowerCut()
		if ended && err != nil {
			t.Fatal(err)
		}
		_ = d.s.Close()
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.Random(uint64(k))} {
			again := must[*device](t)(onDisk(t, "here", disk.Crash(choice)))
			for f, err := range again.s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
				if err != nil || f.Severity == ctxdir.SeverityError {
					t.Errorf("cut %d, %v: %+v, %v", k, choice, f, err)
				}
			}
			again.sync(peer.f, Options{Pull: true})
			again.everything(t, k, ids)
			if err := again.s.Close(); err != nil {
				t.Error(err)
			}
		}
		if cuts++; ended || t.Failed() {
			break
		}
	}
	t.Logf("%d cuts", cuts)
}

// everything: the store shows what it had, and what the peer has.
func (d *device) everything(t *testing.T, k int, ids []uuid.UUID) {
	text := strings.Join(d.shown(), "\n")
	for _, want := range []string{
		"A long walk", "three, better", "four here", "four there", "three on alt", "Another", "first", ids[0].String() + " erased",
		"main~here",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("cut %d: %q is missing:\n%s", k, want, text)
		}
	}
	if strings.Contains(text, `"one"`) {
		t.Errorf("cut %d: the erased message is here:\n%s", k, text)
	}
}
