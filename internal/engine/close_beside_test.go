package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// count says when goroutines have done something so many times.
type count struct {
	left    atomic.Int64
	end     func()
	reached chan struct{} // closed then, or when one of them called end
}

func newCount(want int) *count {
	c := &count{reached: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.reached) })
	c.left.Store(int64(want) + 1)
	c.add()
	return c
}

func (c *count) add() {
	if c.left.Add(-1) == 0 {
		c.end()
	}
}

// TestCloseBeside: a context is closed while everything is done with it in other goroutines. What they do succeeds, or
// fails with ErrClosed and did nothing; what was acknowledged is there, and nothing is damaged.
func TestCloseBeside(t *testing.T) {
	ctx := context.Background()
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	s, dir := kit.NewStore(t, engine.WithSealBytes(4<<10), engine.WithTextThreshold(100))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	id := c.ID()
	text := func(of string) engine.Draft {
		return engine.Draft{Body: []byte(`{"role":"user","text":"` + strings.Repeat(of+" ", 30) + `"}`)}
	}
	first := kit.Append(t, c.Active(), text("first")).ID
	kit.Check(t, c.Close())
	want := map[uuid.UUID]bool{first: true} // whether it was acknowledged
	for round := range rounds {
		c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		name := fmt.Sprint("round ", round)
		kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, name, 0))
		var mu sync.Mutex
		var closed atomic.Bool
		begun := newCount(round * 3)
		loaded := kit.Must[*engine.Message](t)(c.Active().Message(ctx, first))
		body := kit.Must[json.RawMessage](t)(loaded.Body(ctx))
		all := everything(ctx, c, first, name, "")
		for _, alone := range []string{"Rollback", "Remove", "Rename"} {
			delete(all, "Context."+alone)
		}
		delete(all, "archiving.Unarchive")
		delete(all, "Branch.Rewind")
		delete(all, "Branch.Replace")
		switch round % 5 {
		case 0:
			all["move"] = func() error {
				_, err := kit.Archive(ctx, c, archiving.Options{})
				if err == nil {
					_, err = archiving.Unarchive(ctx, c, nil)
				}
				return err
			}
		case 1:
			all["replace"] = func() error { return c.Active().Replace(ctx, first, text("first"), engine.Shared()) }
		}
		all["rename"] = func() error { return c.Rename(ctx, name, name) }
		for _, once := range []string{"Context.NewBranch", "Branch.Fork"} {
			f, n := all[once], 0
			all[once] = func() error {
				if n++; n > 1 {
					return c.Switch(ctx, engine.MainBranch)
				}
				return f()
			}
		}
		all["acknowledged"] = func() error {
			id := uuid.New()
			d := text(id.String())
			d.ID = id
			_, err := c.Active().Append(ctx, d)
			mu.Lock()
			defer mu.Unlock()
			want[id] = err == nil
			return err
		}
		all["Message.Body"] = func() error {
			_, err := c.Active().Len(ctx)
			if now, berr := loaded.Body(ctx); berr != nil || string(now) != string(body) {
				return fmt.Errorf("%.80s: %w", now, berr)
			}
			return err
		}
		var group sync.WaitGroup
		for name, operation := range all {
			group.Go(func() {
				var err error
				for last := false; err == nil && !last; begun.add() {
					last = closed.Load()
					err = operation()
				}
				begun.end()
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, engine.ErrClosed) {
					t.Errorf("round %d: %s: %v", round, name, err)
				}
			})
		}
		<-begun.reached
		kit.Check(t, c.Close())
		closed.Store(true)
		group.Wait()
		if t.Failed() {
			return
		}
	}
	c = kit.Must[*engine.Context](t)(s.Context(ctx, id))
	defer c.Close()
	for m, err := range c.Active().Messages(ctx) {
		kit.Check(t, err, m.Unavailable)
		if acknowledged, ours := want[m.ID]; ours && !acknowledged {
			t.Errorf("message %s is there, and its append was refused", m.ID)
		}
		delete(want, m.ID)
		kit.Must[json.RawMessage](t)(m.Body(ctx))
	}
	for id, acknowledged := range want {
		if acknowledged {
			t.Errorf("message %s was acknowledged and is not there", id)
		}
	}
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		kit.Check(t, err)
		t.Errorf("%s: %+v", dir, f)
	}
}

// TestStoreCloseBeside: a store is closed beside operations on it and on a context that is open. They fail, at some
// moment, and what was acknowledged is there.
func TestStoreCloseBeside(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	id := c.ID()
	kit.Check(t, c.Close())
	want := map[uuid.UUID]bool{} // what was acknowledged
	for round := range 30 {
		s := kit.Must[*engine.Store](t)(kit.Open(dir))
		c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
		var mu sync.Mutex
		var group sync.WaitGroup
		begun := newCount(round)
		for _, operation := range []func() error{
			func() error {
				at, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{"role":"user"}`)})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					want[at.ID] = true
				}
				return err
			},
			func() error { return c.Update(ctx, func(*engine.Metadata) error { return nil }) },
			func() error { return kit.IterationError(listing.New(s).List(ctx, listing.ListOptions{})) },
			func() error {
				c, err := s.Context(ctx, id)
				if err == nil {
					_, err = c.Active().Load(ctx)
					err = errors.Join(err, c.Close())
				}
				return err
			},
			func() error {
				c, err := s.Create(ctx, engine.Metadata{})
				if err == nil {
					err = c.Close()
				}
				return err
			},
		} {
			group.Go(func() {
				for operation() == nil {
					begun.add()
				}
				begun.end()
			})
		}
		<-begun.reached
		kit.Check(t, s.Close())
		group.Wait()
		// The last append may have been acknowledged when the store was closed already: then it has no file.
		if err := c.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Fatal(err)
		}
	}
	c = kit.Must[*engine.Context](t)(s.Context(ctx, id))
	defer c.Close()
	for _, m := range kit.Load(t, c.Active()) {
		kit.Check(t, m.Unavailable)
		delete(want, m.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d messages were acknowledged and are not there", len(want))
	}
}

// TestCloseWaitsForBurst: what a close does about metadata.json waits for a running burst, which may have the handle's
// lock. Otherwise the close would close that lock, and the burst would wait forever to release it.
func TestCloseWaitsForBurst(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	other := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer other.Close()
	var ended atomic.Bool
	waited := make(chan bool)
	engine.DuringBurst(s, func() {
		go func() {
			err := engine.FlushProjection(ctx, c)
			waited <- err == nil && ended.Load()
		}()
		for i := range 20 { // syncs, so that the other goroutine gets its turn
			kit.Check(t, other.Update(ctx, func(m *engine.Metadata) error {
				m.Title = fmt.Sprint(i)
				return nil
			}))
		}
		ended.Store(true)
	})
	if !<-waited {
		t.Error("the close did not wait for the burst")
	}
}
