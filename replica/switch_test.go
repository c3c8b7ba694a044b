package replica

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

func (d *device) mode(t *testing.T, f func(s *ctxdir.Settings)) {
	t.Helper()
	err := d.s.Configure(t.Context(), func(s *ctxdir.Settings) error {
		f(s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func local(s *ctxdir.Settings) { s.StorageMode = ctxdir.StorageLocal }

// walk makes a context with a fork, a long text and an erased message.
func (d *device) walk(m ctxdir.Metadata) uuid.UUID {
	id := d.create(m)
	ids := d.append(id, "main", "one", strings.Repeat("a long text ", 5000), "three", "secret")
	d.use(id, func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(d.t.Context(), "alt", 2)
		return err
	})
	d.append(id, "alt", "three on alt")
	must[[]ctxdir.Erased](d.t)(d.s.Erase(d.t.Context(), id, ids[3:], ctxdir.EraseOptions{}))
	return id
}

// switched runs Confirm or CleanUp, and returns the states.
func switched(t *testing.T, f func(SwitchOptions) (int, error)) (states []SwitchState) {
	t.Helper()
	left, err := f(SwitchOptions{Host: "h", Report: func(s Switched) {
		states = append(states, s.State)
		if s.Err != nil || s.State != SwitchPending && len(s.Digest) != 64 {
			t.Errorf("%+v", s)
		}
	}})
	if left != 0 || err != nil {
		t.Errorf("%d left, %v", left, err)
	}
	return states
}

func all(s SwitchState, n int) []SwitchState { return slices.Repeat([]SwitchState{s}, n) }

func (d *device) nothing(t *testing.T, when string) {
	t.Helper()
	if got := d.shown(); len(got) > 0 {
		t.Errorf("%s: %q", when, got)
	}
}

// TestSwitch moves contexts to a server and back. In between, syncs and an empty trash change nothing.
func TestSwitch(t *testing.T) {
	a, b := newDevice(t, "ada"), newDevice(t, "server")
	c := overPipe(t, b, Limits{})
	ids := []uuid.UUID{a.walk(ctxdir.Metadata{Title: "A walk"}), a.walk(ctxdir.Metadata{Title: "Another walk"})}
	want := a.shown()
	a.mode(t, local)
	quiet := func(when string) {
		t.Helper()
		if got := a.sync(c, Options{}); len(got) > 0 {
			t.Errorf("%s, sync did %+v", when, got)
		}
	}
	total, err := Sync(t.Context(), a.f, c, Options{})
	if err != nil || total.Kept != 2 || total.Messages != 0 {
		t.Errorf("local mode: %+v, %v", total, err)
	}
	quiet("in local mode")
	b.nothing(t, "a server in local mode")
	confirm := func(o SwitchOptions) (int, error) { return Confirm(t.Context(), a.f, c, ids, o) }
	if got := switched(t, confirm); !slices.Equal(got, all(SwitchConfirmed, 2)) {
		t.Error(got)
	}
	same(t, a, b)
	if got := switched(t, confirm); !slices.Equal(got, all(SwitchConfirmed, 2)) {
		t.Errorf("again: %v", got)
	}
	a.mode(t, func(s *ctxdir.Settings) { s.StorageMode = ctxdir.StorageServer })
	got := switched(t, func(o SwitchOptions) (int, error) { return CleanUp(t.Context(), a.f, c, ids, true, o) })
	if !slices.Equal(got, all(SwitchCleaned, 2)) {
		t.Error(got)
	}
	held, err := HeldBy(a.f, must[uuid.UUID](t)(c.Store(t.Context())))
	if err != nil || held.Contexts != 2 || len(held.Away) != 2 {
		t.Errorf("%+v, %v", held, err)
	}
	quiet("after the clean-up")
	must[[]ctxdir.TrashItem](t)(a.s.Purge(t.Context(), ctxdir.PurgeOptions{All: true}))
	quiet("with an empty trash")
	a.nothing(t, "here, after the clean-up")
	if got := b.shown(); !slices.Equal(got, want) {
		t.Errorf("on the server: %q, not %q", got, want)
	}
	b.append(ids[0], "main", "later")
	quiet("after a message on the server")
	back := func(o SwitchOptions) (int, error) {
		o.Pull = true
		return Confirm(t.Context(), a.f, c, ids, o)
	}
	if got := switched(t, back); !slices.Equal(got, all(SwitchConfirmed, 2)) {
		t.Errorf("back: %v", got)
	}
	same(t, a, b)
	a.mode(t, local)
	there := b.shown()
	a.append(ids[1], "main", "only here")
	if got := switched(t, back); !slices.Equal(got, all(SwitchConfirmed, 2)) {
		t.Errorf("back again: %v", got)
	}
	if got := b.shown(); !slices.Equal(got, there) {
		t.Errorf("on the server, after a message here: %q, not %q", got, there)
	}
	want = a.shown()
	got = switched(t, func(o SwitchOptions) (int, error) { return CleanUp(t.Context(), a.f, c, ids, false, o) })
	if !slices.Equal(got, all(SwitchCleaned, 2)) {
		t.Error(got)
	}
	quiet("after the clean-up of the server")
	b.nothing(t, "a server that was cleaned up")
	if got := a.shown(); !slices.Equal(got, want) {
		t.Errorf("here: %q, not %q", got, want)
	}
}

// TestModes: what leaves this machine is decided by context, project and store, and an own folder is no server.
func TestModes(t *testing.T) {
	a, b, copied := newDevice(t, "ada"), newDevice(t, "server"), newDevice(t, "copy")
	c := overPipe(t, b, Limits{})
	project := func(name string) uuid.UUID {
		return a.walk(ctxdir.Metadata{Title: name, Labels: map[string]string{"project": name}})
	}
	other, in, mine := project("/work/other"), project("/work/team/docs"), project("/work/team/mine")
	beside := project("/work/teamwork")
	a.mode(t, func(s *ctxdir.Settings) {
		s.StorageMode = ctxdir.StorageLocal
		s.Modes = []ctxdir.Mode{
			{Context: other, Mode: ctxdir.StorageServer},
			{Project: "/work/team", Mode: ctxdir.StorageServer}, {Project: "/work/team/mine", Mode: ctxdir.StorageLocal},
		}
	})
	a.sync(c, Options{})
	if !b.has(other) || !b.has(in) || b.has(mine) || b.has(beside) {
		t.Errorf("on the server: %t, %t, %t, %t", b.has(other), b.has(in), b.has(mine), b.has(beside))
	}
	a.sync(copied.f, Options{})
	same(t, a, copied)
	for _, m := range [][]ctxdir.Mode{{{Mode: "local"}}, {{Context: other, Project: "x", Mode: "local"}}, {{Context: other}}} {
		err := a.s.Configure(t.Context(), func(s *ctxdir.Settings) error {
			s.Modes = m
			return nil
		})
		if !errors.Is(err, ctxdir.ErrInvalid) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// meddler is a peer to whose store somebody writes after it was read.
type meddler struct {
	Peer
	meddle func()
}

func (m *meddler) Digests(ctx context.Context, of []uuid.UUID) ([]Digest, error) {
	all, err := m.Peer.Digests(ctx, of)
	m.meddle()
	return all, err
}

// TestCleanUpChanged: a context stays if anything was written to it since it was confirmed.
func TestCleanUpChanged(t *testing.T) {
	for _, here := range []bool{true, false} {
		a, b := newDevice(t, "ada"), newDevice(t, "server")
		id := a.walk(ctxdir.Metadata{Title: "A walk"})
		if n, err := Confirm(t.Context(), a.f, b.f, []uuid.UUID{id}, SwitchOptions{}); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		writer := a
		if !here {
			writer = b
		}
		clean := func(p Peer) (got Switched) {
			n, err := CleanUp(t.Context(), a.f, p, []uuid.UUID{id}, here, SwitchOptions{Report: func(s Switched) { got = s }})
			if n != 1 || err != nil || !errors.Is(got.Err, ctxdir.ErrConflict) || !a.has(id) || !b.has(id) {
				t.Errorf("here: %t, %d stay, %v, %+v", here, n, err, got)
			}
			return got
		}
		clean(&meddler{b.f, func() { writer.append(id, "main", "meanwhile") }})
		clean(b.f)
		a.sync(b.f, Options{})
		same(t, a, b)
	}
}

// TestConfirmDamaged: what one side cannot read is not confirmed, and nothing is cleaned up.
func TestConfirmDamaged(t *testing.T) {
	a, b := newDevice(t, "ada"), newDevice(t, "server")
	id := a.create(ctxdir.Metadata{})
	a.append(id, "main", "one")
	lost := Message{ID: uuid.New(), Envelope: nil}
	r := must[[]Result](t)(b.f.Apply(t.Context(), []Change{
		{ID: id, Create: &Meta{Active: "main"}, Ops: []Op{{Kind: OpNew, Branch: "x"}, {Kind: OpAppend, Branch: "x", Messages: []Message{lost}}}},
	}, func(string) (io.ReadCloser, int64, error) { return nil, 0, ctxdir.ErrNotExist }))
	if r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	for range 2 {
		var got []Switched
		o := SwitchOptions{Report: func(s Switched) { got = append(got, s) }}
		n, err := Confirm(t.Context(), a.f, b.f, []uuid.UUID{id}, o)
		if n != 1 || err != nil || len(got) != 1 || got[0].State != SwitchSent || !errors.Is(got[0].Err, ctxdir.ErrDamaged) {
			t.Errorf("%d, %v, %+v", n, err, got)
		}
		if n, err := CleanUp(t.Context(), a.f, b.f, []uuid.UUID{id}, true, SwitchOptions{}); n != 1 || err != nil || !a.has(id) {
			t.Errorf("cleaned up: %d, %v", n, err)
		}
	}
}

// TestSwitchPowerCut: wherever the power fails during a switch, one side has all of the context, a sync keeps it there, and
// the next try ends the switch.
func TestSwitchPowerCut(t *testing.T) {
	start := crashfs.New()
	a, b := must[*device](t)(in(t, start, "a")), must[*device](t)(in(t, start, "b"))
	id := a.walk(ctxdir.Metadata{Title: "A walk"})
	want := a.context(id)
	a.close()
	b.close()
	stride := 1
	if testing.Short() {
		stride = 13
	}
	ids := []uuid.UUID{id}
	move := func(a, b *device, here bool) error {
		n, err := Confirm(t.Context(), a.f, b.f, ids, SwitchOptions{Host: "h"})
		if err == nil && n == 0 {
			n, err = CleanUp(t.Context(), a.f, b.f, ids, here, SwitchOptions{})
		}
		if err == nil && n > 0 {
			err = errors.New("not done")
		}
		return err
	}
	cuts := 0
	for k := 0; ; k += stride {
		here := k%2 == 0
		disk := start.Clone()
		a, b := must[*device](t)(in(t, disk, "a")), must[*device](t)(in(t, disk, "b"))
		disk.CutAt(len(disk.Ops()) + k)
		err := move(a, b, here)
		ended := !disk.PowerCut()
		if ended && err != nil {
			t.Fatal(err)
		}
		_, _ = a.s.Close(), b.s.Close()
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.Random(uint64(k))} {
			disk := disk.Crash(choice)
			a, b := must[*device](t)(in(t, disk, "a")), must[*device](t)(in(t, disk, "b"))
			if has := a.has(id); has {
				if got := a.context(id); !slices.Equal(got, want) {
					t.Errorf("cut %d, %v: the context shows %q, not %q", k, choice, got, want)
				}
			}
			if !ended {
				a.sync(b.f, Options{})
			}
			if !a.has(id) && !b.has(id) {
				t.Errorf("cut %d, %v: a sync lost the context", k, choice)
			}
			if err := move(a, b, here); err != nil && (a.has(id) || here) && !ended {
				t.Errorf("cut %d, %v: %v", k, choice, err)
			}
			from, to := a, b
			if !here {
				from, to = b, a
			}
			if got := to.context(id); !slices.Equal(got, want) || from.has(id) {
				t.Errorf("cut %d, %v: after the switch: %q, not %q", k, choice, got, want)
			}
			a.close()
			b.close()
		}
		if cuts++; ended && !here || t.Failed() {
			break
		}
	}
	t.Logf("%d cuts", cuts)
}
