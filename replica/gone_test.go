package replica

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// meddling is a peer before whose calls somebody does something, once.
type meddling struct {
	Peer
	call string
	do   *func()
}

func (p meddling) before(call string) {
	if do := *p.do; call == p.call && do != nil {
		*p.do = nil
		do()
	}
}

func (p meddling) Rows(ctx context.Context, of []Range) ([][]Row, error) {
	p.before("rows")
	return p.Peer.Rows(ctx, of)
}

func (p meddling) Heads(ctx context.Context, of []HeadRequest) ([]Head, error) {
	p.before("heads")
	return p.Peer.Heads(ctx, of)
}

func (p meddling) Read(ctx context.Context, of []Range, size int64) ([]Message, error) {
	p.before("read")
	return p.Peer.Read(ctx, of, size)
}

// removeForGood removes a branch, and what only it shows.
func (d *device) removeForGood(id uuid.UUID, branch string) {
	d.t.Helper()
	d.use(id, func(c *ctxdir.Context) error {
		_, err := c.Commit(d.t.Context(), func(tx *ctxdir.Tx) error { return tx.RemoveBranch(branch) })
		return err
	})
	if _, err := d.s.Collect(d.t.Context(), ctxdir.CollectOptions{All: true, NoGrace: true}); err != nil {
		d.t.Fatal(err)
	}
}

// TestGoneMeanwhile: a branch that is removed for good while a sync runs, on either side, disturbs no other context, and the run
// compares its context again.
func TestGoneMeanwhile(t *testing.T) {
	for _, test := range []struct {
		name   string
		call   string // of the peer, before which the branch goes
		here   bool   // from the store; else from the peer
		agreed bool   // both sides had the branch when they last agreed
	}{
		{"rows of the peer", "rows", false, false},
		{"rows of the store", "heads", true, false},
		{"messages", "read", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := newDevice(t, "ada"), newDevice(t, "bob")
			id, other := a.create(ctxdir.Metadata{Title: "A walk"}), a.create(ctxdir.Metadata{Title: "Another"})
			a.append(id, "main", "one")
			a.use(id, func(c *ctxdir.Context) error {
				_, err := c.NewBranch(t.Context(), "alt")
				return err
			})
			a.append(id, "alt", "two")
			a.append(other, "main", "three")
			a.sync(b.f, Options{})
			local, peer := b, a // they never agreed as such
			if test.agreed {
				local, peer = a, b
			}
			peer.append(id, "alt", "four")
			peer.append(other, "main", "five")
			gone := peer
			if test.here {
				gone = local
			}
			do := func() { gone.removeForGood(id, "alt") }
			local.sync(meddling{peer.f, test.call, &do}, Options{})
			if do != nil {
				t.Fatal("nothing happened meanwhile")
			}
			same(t, a, b)
		})
	}
}

// TestGoneHalfway: a branch that is removed for good when one side has got a part of it goes there, too.
func TestGoneHalfway(t *testing.T) {
	for _, test := range []struct {
		name string
		was  int // messages that both sides had before
	}{{"a new branch", 0}, {"a branch that goes on", 2}} {
		t.Run(test.name, func(t *testing.T) {
			a, b := newDevice(t, "ada"), newDevice(t, "bob")
			id := b.create(ctxdir.Metadata{Title: "A walk"})
			b.append(id, "main", "one")
			if test.was > 0 {
				b.fork(id, "alt", test.was)
			}
			a.sync(b.f, Options{})
			if test.was == 0 {
				b.fork(id, "alt", 1)
			}
			b.append(id, "alt", "five", "six", "seven")
			reads := 0
			a.sync(reading{b.f, func() {
				if reads++; reads == 2 {
					b.removeForGood(id, "alt")
				}
			}}, Options{})
			if reads < 2 {
				t.Fatal("all came at once")
			}
			same(t, a, b)
			if got := strings.Join(a.shown(), "\n"); strings.Contains(got, "branch alt") {
				t.Error(got)
			}
		})
	}
}

// TestRemovedAfterFailure: a context whose sync failed after the commit, such as in an erase, counts as unchanged where only the sync
// changed it: when the other side removes it, it does not come back.
func TestRemovedAfterFailure(t *testing.T) {
	a, b := newDevice(t, "ada"), newDevice(t, "bob")
	id := a.create(ctxdir.Metadata{Title: "A walk"})
	a.append(id, "main", "one")
	a.fork(id, "alt", 1)
	a.sync(b.f, Options{})
	a.append(id, "main", "two")
	a.use(id, func(c *ctxdir.Context) error {
		alt, err := c.Branch("alt")
		if err == nil {
			_, err = alt.Rename(t.Context(), "other")
		}
		return err
	})
	a.append(id, "other", "three")
	var failed error
	o := Options{Report: func(x Synced) { failed = x.Err }}
	if _, err := Sync(t.Context(), a.f, failing{b.f}, o); err != nil || !errors.Is(failed, ctxdir.ErrLocked) {
		t.Fatal(err, failed)
	}
	must[ctxdir.TrashItem](t)(a.s.Remove(t.Context(), id))
	a.sync(b.f, Options{})
	if got := append(a.shown(), b.shown()...); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestChangedAfterFailure: a context that both sides never agreed on, since its first sync failed after the commit. What becomes of
// a branch that travelled is a change of it: the branch does not come back.
func TestChangedAfterFailure(t *testing.T) {
	removed := func(b *ctxdir.Branch) error { return b.Remove(t.Context()) }
	renamed := func(b *ctxdir.Branch) error {
		_, err := b.Rename(t.Context(), "other")
		return err
	}
	for _, test := range []struct {
		name  string
		there bool // the other side changes the branch
		do    func(b *ctxdir.Branch) error
		want  string
	}{
		{"removed", false, removed, ""},
		{"removed there", true, removed, ""},
		{"renamed", false, renamed, "branch other"},
		{"renamed there", true, renamed, "branch other"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := newDevice(t, "ada"), newDevice(t, "bob")
			id := a.create(ctxdir.Metadata{Title: "A walk"})
			a.append(id, "main", "one")
			a.fork(id, "alt", 1)
			var failed error
			o := Options{Report: func(x Synced) { failed = x.Err }}
			for range 2 { // the second run does not forget what the first one did
				if _, err := Sync(t.Context(), a.f, failing{b.f}, o); err != nil || !errors.Is(failed, ctxdir.ErrLocked) {
					t.Fatal(err, failed)
				}
				a.append(id, "main", "two")
			}
			owner := a
			if test.there {
				owner = b
			}
			owner.use(id, func(c *ctxdir.Context) error {
				alt, err := c.Branch("alt")
				if err == nil {
					err = test.do(alt)
				}
				return err
			})
			a.sync(b.f, Options{})
			same(t, a, b)
			got := strings.Join(a.shown(), "\n")
			if strings.Contains(got, "branch alt") || !strings.Contains(got, test.want) {
				t.Error(got)
			}
		})
	}
}

// failing is a peer whose changes fail after their commits.
type failing struct{ Peer }

func (p failing) Apply(ctx context.Context, c []Change, payload func(string) (io.ReadCloser, int64, error)) ([]Result, error) {
	results, err := p.Peer.Apply(ctx, c, payload)
	for i := range results {
		results[i].Err = ctxdir.ErrLocked
	}
	return results, err
}

// reading is a peer that sends one message at a time.
type reading struct {
	Peer
	before func()
}

func (p reading) Read(ctx context.Context, of []Range, _ int64) ([]Message, error) {
	p.before()
	return p.Peer.Read(ctx, of, 1)
}

func (d *device) fork(id uuid.UUID, branch string, more int) {
	d.t.Helper()
	d.use(id, func(c *ctxdir.Context) error {
		_, err := c.Active().Fork(d.t.Context(), branch, 1)
		return err
	})
	for range more {
		d.append(id, branch, "more")
	}
}

// TestRemovedWhileCopied: what is removed after a context was copied, and before both sides are compared, does not come back.
func TestRemovedWhileCopied(t *testing.T) {
	for _, branch := range []string{"", "alt"} { // the context, or a branch of it
		for _, pull := range []bool{false, true} {
			ctx := t.Context()
			var devices []*device
			for _, name := range []string{"ada", "bob"} {
				s := must[*ctxdir.Store](t)(ctxdir.Init(filepath.Join(t.TempDir(), name)))
				defer s.Close()
				devices = append(devices, &device{t, name, s, NewFolder(s)})
			}
			a, b := devices[0], devices[1]
			owner := a
			if pull {
				owner = b
			}
			id := owner.create(ctxdir.Metadata{Title: "A walk"})
			owner.append(id, "main", "one")
			owner.fork(id, "alt", 0)
			disk := must[vfs.FS](t)(a.f.disk())
			defer disk.Close()
			s := &session{local: a.f, remote: b.f, agreed: readAgreements(disk, b.s.Info().ID)}
			s.copyMissing(ctx, []*plan{{id: id, createL: pull, createR: !pull}})
			if err := s.agreed.save(); err != nil {
				t.Fatal(err)
			}
			if branch == "" {
				must[ctxdir.TrashItem](t)(owner.s.Remove(ctx, id))
			} else {
				owner.removeForGood(id, branch)
			}
			a.sync(b.f, Options{})
			same(t, a, b)
			for _, d := range devices {
				got := strings.Join(d.shown(), "\n")
				if strings.Contains(got, "branch alt") || branch == "" && got != "" {
					t.Errorf("pull %v, %s: %s", pull, d.name, got)
				}
			}
		}
	}
}
