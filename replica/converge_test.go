package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// broken is a peer whose connection breaks at random: before a call has its effect, or after.
type broken struct {
	Peer
	r *rand.Rand
}

var errBroken = errors.New("the connection broke")

func (b *broken) Apply(ctx context.Context, c []Change, p func(string) (io.ReadCloser, int64, error)) ([]Result, error) {
	switch b.r.IntN(6) {
	case 0:
		return nil, errBroken
	case 1:
		_, err := b.Peer.Apply(ctx, c[:b.r.IntN(len(c)+1)], p)
		return nil, errors.Join(errBroken, err)
	}
	return b.Peer.Apply(ctx, c, p)
}

func (b *broken) Read(ctx context.Context, of []Range, size int64) ([]Message, error) {
	if b.r.IntN(8) == 0 {
		return nil, errBroken
	}
	return b.Peer.Read(ctx, of, min(size, 1+int64(b.r.IntN(1000))))
}

// TestConverge: devices and a hub, with anything happening between, and connections that break, show the same in the end. No
// message that somebody appended, and nobody dropped or erased, is missing anywhere, and no message is twice in a branch.
func TestConverge(t *testing.T) {
	runs := 100
	if testing.Short() {
		runs = 8
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { converge(t, uint64(seed)) })
	}
}

type world struct {
	t       *testing.T
	r       *rand.Rand
	devices []*device
	hub     *device
	ids     []uuid.UUID
	kept    map[uuid.UUID]string // messages that must be everywhere, and their context
	said    int
}

func converge(t *testing.T, seed uint64) {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), hub: newDevice(t, "hub"), kept: map[uuid.UUID]string{}}
	for i := range 5 {
		w.devices = append(w.devices, newDevice(t, fmt.Sprintf("dev%d", i)))
	}
	for range 60 {
		w.step()
	}
	for round := 0; ; round++ {
		var all []Synced
		for _, d := range w.devices {
			all = append(all, d.sync(w.hub.f, Options{})...)
		}
		if len(all) == 0 {
			break
		}
		if round == 6 {
			t.Fatalf("still not the same: %+v", all)
		}
	}
	for _, d := range w.devices {
		same(t, w.hub, d)
		if got := d.sync(w.hub.f, Options{}); len(got) > 0 {
			t.Errorf("%s syncs again: %+v", d.name, got)
		}
	}
	text := strings.Join(w.hub.shown(), "\n")
	for id := range w.kept {
		if !strings.Contains(text, id.String()) {
			t.Errorf("message %s is lost: %s\n%s", id, w.kept[id], text)
		}
	}
	for _, id := range w.ids {
		w.once(id)
	}
	for f, err := range w.hub.s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		if err != nil || f.Severity == ctxdir.SeverityError {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

// once: no branch shows a message twice.
func (w *world) once(id uuid.UUID) {
	err := w.hub.s.Use(w.t.Context(), id, func(c *ctxdir.Context) error {
		for _, b := range c.Metadata().Branches {
			of, err := c.Branch(b.Name)
			if err != nil {
				return err
			}
			seen := map[uuid.UUID]bool{}
			for row, err := range of.Rows(w.t.Context(), 0, ctxdir.End) {
				if err != nil {
					return err
				}
				if seen[row.ID] {
					w.t.Errorf("branch %q has message %s twice", b.Name, row.ID)
				}
				seen[row.ID] = true
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Error(err)
	}
}

// step: one device does one thing.
func (w *world) step() {
	ctx, d := w.t.Context(), w.devices[w.r.IntN(len(w.devices))]
	var here []uuid.UUID
	for id, err := range d.s.IDs() {
		if err != nil {
			w.t.Fatal(err)
		}
		here = append(here, id)
	}
	if len(here) == 0 || w.r.IntN(20) == 0 && len(w.ids) < 3 {
		if len(w.ids) < 3 {
			w.said++
			w.ids = append(w.ids, d.create(ctxdir.Metadata{Title: fmt.Sprint("title ", w.said)}))
		}
		w.sync(d)
		return
	}
	id := here[w.r.IntN(len(here))]
	if w.r.IntN(3) == 0 {
		w.sync(d)
		return
	}
	d.use(id, func(c *ctxdir.Context) error {
		all := c.Metadata().Branches
		b, err := c.Branch(all[w.r.IntN(len(all))].Name)
		if err != nil {
			return err
		}
		rows := must[[]*ctxdir.Message](w.t)(b.Range(ctx, 0, ctxdir.End))
		w.said++
		switch n := w.r.IntN(20); {
		case n < 9:
			for range 1 + w.r.IntN(3) {
				w.said++
				r, err := b.Append(ctx, ctxdir.Draft{Body: said(fmt.Sprint(d.name, " says ", w.said))})
				if err != nil {
					return err
				}
				w.kept[r.ID] = fmt.Sprintf("%s, by %s on %s", id, d.name, b.Name())
			}
		case n < 12:
			_, err = b.Fork(ctx, fmt.Sprint("fork ", w.said), int64(w.r.IntN(len(rows)+1)))
		case n < 13:
			_, err = b.Rename(ctx, fmt.Sprint("name ", w.said))
		case n < 14:
			return c.Switch(ctx, b.Name())
		case n < 15:
			to := int64(w.r.IntN(len(rows) + 1))
			for _, m := range rows[to:] {
				delete(w.kept, m.ID)
			}
			err = b.Rewind(ctx, to)
		case n < 16:
			if b.Name() == c.Active().Name() {
				break
			}
			for _, m := range rows {
				delete(w.kept, m.ID)
			}
			err = b.Remove(ctx)
		case n < 18 && len(rows) > 0:
			m := rows[w.r.IntN(len(rows))]
			if m.Unavailable == nil {
				err = b.Replace(ctx, m.ID, ctxdir.Draft{Body: said(fmt.Sprint(d.name, " corrects ", w.said))}, ctxdir.WriteOptions{Shared: true})
			}
		case n < 19 && len(rows) > 0:
			m := rows[w.r.IntN(len(rows))]
			if m.Unavailable == nil {
				delete(w.kept, m.ID)
				_, err = d.s.Erase(ctx, id, []uuid.UUID{m.ID}, ctxdir.EraseOptions{Shared: true})
			}
		default:
			err = c.Update(ctx, func(m *ctxdir.Metadata) error {
				if m.Labels == nil {
					m.Labels = map[string]string{}
				}
				m.Labels[fmt.Sprint(w.r.IntN(3))] = fmt.Sprint(w.said)
				return nil
			})
		}
		return err
	})
}

// sync brings a device and the hub, or another device, together, over a connection that may break.
func (w *world) sync(d *device) {
	with := w.hub
	if w.r.IntN(4) == 0 {
		if with = w.devices[w.r.IntN(len(w.devices))]; with == d {
			return
		}
	}
	o := Options{Host: d.name, Push: w.r.IntN(8) == 0, Pull: w.r.IntN(8) == 0}
	o.Report = func(s Synced) {
		if s.Err != nil && !errors.Is(s.Err, errBroken) {
			w.t.Errorf("%s with %s, %s: %v", d.name, with.name, s.ID, s.Err)
		}
	}
	if _, err := Sync(w.t.Context(), d.f, &broken{with.f, w.r}, o); err != nil && !errors.Is(err, errBroken) {
		w.t.Errorf("%s with %s: %v", d.name, with.name, err)
	}
}
