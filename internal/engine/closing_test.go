package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/google/uuid"
)

// everything is all methods of Context and Branch that need files of the context.
func everything(ctx context.Context, c *Context, id uuid.UUID, name, path string) map[string]func() error {
	b := c.Active()
	d := Draft{Body: []byte(`{"role":"user"}`)}
	only := func(_ any, err error) error { return err }
	return map[string]func() error{
		"Context.Archive":      func() error { return only(c.Archive(ctx, ArchiveOptions{})) },
		"Context.BlobBytes":    func() error { return only(c.BlobBytes(ctx)) },
		"Context.Branches":     func() error { return only(c.Branches(ctx)) },
		"Context.Externalise":  func() error { return only(c.Externalise(ctx, 1, false)) },
		"Context.Files":        func() error { return ended(c.Files(ctx)) },
		"Context.Fold":         func() error { return c.Fold(ctx) },
		"Context.NewBranch":    func() error { return only(c.NewBranch(ctx, name+" new")) },
		"Context.Refresh":      func() error { return c.Refresh(ctx) },
		"Context.Remove":       func() error { return c.Remove(ctx, "side") },
		"Context.Rename":       func() error { return c.Rename(ctx, "side", name+" renamed") },
		"Context.Rollback":     func() error { return only(c.Rollback(ctx, path, RollbackOptions{})) },
		"Context.Sequence":     func() error { return only(c.Sequence()) },
		"Context.Summary":      func() error { return c.Summary().Problem },
		"Context.Switch":       func() error { return c.Switch(ctx, MainBranch) },
		"Context.SystemPrompt": func() error { return only(c.SystemPrompt(ctx, MainBranch)) },
		"Context.Unarchive":    func() error { return only(c.Unarchive(ctx, nil)) },
		"Context.Update":       func() error { return c.Update(ctx, func(m *Metadata) error { m.Title += "."; return nil }) },
		"Context.Watch": func() error {
			w, err := c.Watch(ctx, FromNow)
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"Branch.Append":      func() error { return only(b.Append(ctx, d)) },
		"Branch.AppendBatch": func() error { return only(b.AppendBatch(ctx, []Draft{d, d})) },
		"Branch.Between":     func() error { return ended(b.Between(ctx, 0, 2)) },
		"Branch.Fork":        func() error { return only(b.Fork(ctx, name+" fork", 0)) },
		"Branch.ForkAt":      func() error { return only(b.ForkAt(ctx, name+" fork at", id)) },
		"Branch.From":        func() error { return ended(b.From(ctx, 1)) },
		"Branch.Info":        func() error { return only(b.Info(ctx)) },
		"Branch.Last":        func() error { return only(b.Last(ctx, 2)) },
		"Branch.Len":         func() error { return only(b.Len(ctx)) },
		"Branch.Load":        func() error { return only(b.Load(ctx)) },
		"Branch.Message":     func() error { return only(b.Message(ctx, id)) },
		"Branch.Messages":    func() error { return ended(b.Messages(ctx)) },
		"Branch.Range":       func() error { return only(b.Range(ctx, 0, 2)) },
		"Branch.Replace":     func() error { return b.Replace(ctx, id, d, Shared()) },
		"Branch.Rewind": func() error {
			side, err := c.Branch("side")
			if err == nil {
				err = side.Rewind(ctx, 0)
			}
			return err
		},
	}
}

// ended returns the error that ends an iteration.
func ended[T any](seq func(yield func(T, error) bool)) (err error) {
	seq(func(_ T, e error) bool { err = e; return e == nil })
	return err
}

// TestClosed: whatever is asked of a context after Close fails with ErrClosed and writes nothing, but for what is in
// memory. To close it again is no error.
func TestClosed(t *testing.T) {
	ctx := context.Background()
	inMemory := []string{
		"Context.Active", "Context.Branch", "Context.Close", "Context.ID",
		"Context.Legacy", "Context.Metadata", "Context.Problem", "Branch.Name",
	}
	s, dir := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{Title: "closed"}))
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(`{"role":"user"}`)}))
	must[*Branch](t)(c.Active().Fork(ctx, "side", 1))
	path := filepath.Join(t.TempDir(), "legacy.json")
	all := everything(ctx, c, at.ID, "b", path)
	for _, of := range []reflect.Type{reflect.TypeFor[*Context](), reflect.TypeFor[*Branch]()} {
		for i := range of.NumMethod() {
			name := of.Elem().Name() + "." + of.Method(i).Name
			if _, there := all[name]; there == slices.Contains(inMemory, name) {
				t.Errorf("%s is not looked at, or twice", name)
			}
		}
	}
	released := 0
	c.release = func() { released++ }
	check(t, c.Close(), c.Close())
	if released != 1 {
		t.Errorf("what the context needs was let go of %d times", released)
	}
	before := tree(t, dir)
	for name, operation := range all {
		err := operation()
		if !errors.Is(err, ErrClosed) || errors.Is(err, ErrMetadata) || errors.Is(err, ErrDurability) || errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := c.Branch("side"); err != nil || b.Name() != "side" || c.Active().Name() != MainBranch ||
		c.ID() != c.Metadata().ID || c.Problem() != nil {
		t.Errorf("%v %v %v %v", b, err, c.Metadata(), c.Problem())
	}
	if sum := c.Summary(); sum.Title != "closed" {
		t.Errorf("%+v", sum)
	}
	if tree(t, dir) != before {
		t.Error("something was written")
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", path, err)
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
	s, dir := newStore(t, WithFoldBytes(4<<10), WithTextThreshold(100))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	id := c.ID()
	text := func(of string) Draft {
		return Draft{Body: []byte(`{"role":"user","text":"` + strings.Repeat(of+" ", 30) + `"}`)}
	}
	first := must[Appended](t)(c.Active().Append(ctx, text("first"))).ID
	check(t, c.Close())
	want := map[uuid.UUID]bool{first: true} // whether it was acknowledged
	for round := range rounds {
		c := must[*Context](t)(s.Context(ctx, id))
		name := fmt.Sprint("round ", round)
		must[*Branch](t)(c.Active().Fork(ctx, name, 0))
		var mu sync.Mutex
		var done atomic.Int64
		var closed atomic.Bool
		loaded := must[*Message](t)(c.Active().Message(ctx, first))
		body := must[json.RawMessage](t)(loaded.Body(ctx))
		all := everything(ctx, c, first, name, "")
		for _, alone := range []string{"Archive", "Unarchive", "Rollback", "Remove", "Rename"} {
			delete(all, "Context."+alone)
		}
		delete(all, "Branch.Rewind")
		delete(all, "Branch.Replace")
		switch round % 5 {
		case 0:
			all["move"] = func() error {
				_, err := c.Archive(ctx, ArchiveOptions{})
				if err == nil {
					_, err = c.Unarchive(ctx, nil)
				}
				return err
			}
		case 1:
			all["replace"] = func() error { return c.Active().Replace(ctx, first, text("first"), Shared()) }
		}
		all["rename"] = func() error { return c.Rename(ctx, name, name) }
		for _, once := range []string{"Context.NewBranch", "Branch.Fork", "Branch.ForkAt"} {
			f, n := all[once], 0
			all[once] = func() error {
				if n++; n > 1 {
					return c.Switch(ctx, MainBranch)
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
				for last := false; err == nil && !last; done.Add(1) {
					last = closed.Load()
					err = operation()
				}
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, ErrClosed) {
					t.Errorf("round %d: %s: %v", round, name, err)
				}
			})
		}
		for until := int64(round * 3); done.Load() < until; {
			runtime.Gosched()
		}
		check(t, c.Close())
		closed.Store(true)
		group.Wait()
		if t.Failed() {
			return
		}
	}
	c = must[*Context](t)(s.Context(ctx, id))
	defer c.Close()
	for m, err := range c.Active().Messages(ctx) {
		check(t, err, m.Unavailable)
		if acknowledged, ours := want[m.ID]; ours && !acknowledged {
			t.Errorf("message %s is there, and its append was refused", m.ID)
		}
		delete(want, m.ID)
		must[json.RawMessage](t)(m.Body(ctx))
	}
	for id, acknowledged := range want {
		if acknowledged {
			t.Errorf("message %s was acknowledged and is not there", id)
		}
	}
	for f, err := range s.Check(ctx, nil, CheckOptions{ReadData: true}) {
		check(t, err)
		t.Errorf("%s: %+v", dir, f)
	}
}

// TestCloseWaits: Close waits for what is under way, and nothing begins meanwhile.
func TestCloseWaits(t *testing.T) {
	ctx := context.Background()
	s, _ := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	began, end, updated, closed := make(chan bool), make(chan bool), make(chan error, 1), make(chan error, 2)
	go func() {
		updated <- c.Update(ctx, func(m *Metadata) error {
			began <- true
			<-end
			m.Title = "updated"
			return nil
		})
	}()
	<-began
	for range 2 {
		go func() { closed <- c.Close() }()
	}
	var err error
	for err == nil {
		_, err = c.Active().Len(ctx)
	}
	if !errors.Is(err, ErrClosed) {
		t.Errorf("while it is closed: %v", err)
	}
	if _, err := c.Active().Append(ctx, Draft{Body: []byte(`{}`)}); !errors.Is(err, ErrClosed) {
		t.Errorf("while it is closed: %v", err)
	}
	select {
	case err := <-closed:
		t.Errorf("closed beside an update: %v", err)
		closed <- err
	default:
	}
	end <- true
	check(t, <-updated, <-closed, <-closed)
	c = must[*Context](t)(s.Context(ctx, c.ID()))
	defer c.Close()
	if title := c.Metadata().Title; title != "updated" {
		t.Errorf("title %q", title)
	}
}

// TestCloseInIteration: the body of an iteration closes the context. What was read comes still, and then ErrClosed.
func TestCloseInIteration(t *testing.T) {
	ctx := context.Background()
	c, _ := newContext(t)
	drafts := make([]Draft, 2000)
	for i := range drafts {
		drafts[i].Body = []byte(`{}`)
	}
	must[[]Result](t)(c.Active().AppendBatch(ctx, drafts))
	n := int64(0)
	var end error
	for m, err := range c.Active().Messages(ctx) {
		if end = err; err != nil {
			break
		}
		check(t, m.Unavailable)
		if m.Position != n {
			t.Fatalf("message %d at %d", n, m.Position)
		}
		if n++; n == 10 {
			check(t, c.Close())
		}
	}
	if !errors.Is(end, ErrClosed) || n < 10 {
		t.Errorf("ended behind %d messages: %v", n, end)
	}
}

// TestClosePayloads: payloads of messages that were read before are read when the context was closed. Of one that no
// blob has, the error is ErrClosed too.
func TestClosePayloads(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithTextThreshold(100))
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	body := `{"text":"` + strings.Repeat("text ", 100) + `"}`
	at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: []byte(body)}))
	m := must[*Message](t)(c.Active().Message(ctx, at.ID))
	check(t, c.Close())
	if now := must[json.RawMessage](t)(m.Body(ctx)); string(now) != body {
		t.Errorf("%s", now)
	}
	for _, ref := range must[[]Payload](t)(m.Payloads()) {
		check(t, os.Remove(filepath.Join(dir, filepath.FromSlash(blob.Path(ref.Sum)))))
		_, _, err := m.Open(ref)
		var unavailable *UnavailableError
		if _, berr := m.Body(ctx); !errors.Is(err, ErrClosed) || !errors.Is(berr, ErrClosed) ||
			!errors.As(berr, &unavailable) || !errors.Is(berr, os.ErrNotExist) {
			t.Errorf("%v, %v", err, berr)
		}
	}
	// To a context that is open the journal still has it.
	c = must[*Context](t)(s.Context(ctx, c.ID()))
	defer c.Close()
	if now := must[json.RawMessage](t)(must[*Message](t)(c.Active().Message(ctx, at.ID)).Body(ctx)); string(now) != body {
		t.Errorf("%s", now)
	}
}

// TestStoreCloseBeside: a store is closed beside operations on it and on a context that is open. They fail, at some
// moment, and what was acknowledged is there.
func TestStoreCloseBeside(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	c := must[*Context](t)(s.Create(ctx, Metadata{}))
	id := c.ID()
	check(t, c.Close())
	want := map[uuid.UUID]bool{} // what was acknowledged
	for round := range 30 {
		s := must[*Store](t)(Open(dir))
		c := must[*Context](t)(s.Context(ctx, id))
		var mu sync.Mutex
		var done atomic.Int64
		var group sync.WaitGroup
		for _, operation := range []func() error{
			func() error {
				at, err := c.Active().Append(ctx, Draft{Body: []byte(`{"role":"user"}`)})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					want[at.ID] = true
				}
				return err
			},
			func() error { return c.Update(ctx, func(*Metadata) error { return nil }) },
			func() error { return ended(s.List(ctx)) },
			func() error {
				c, err := s.Context(ctx, id)
				if err == nil {
					_, err = c.Active().Load(ctx)
					err = errors.Join(err, c.Close())
				}
				return err
			},
			func() error {
				c, err := s.Create(ctx, Metadata{})
				if err == nil {
					err = c.Close()
				}
				return err
			},
		} {
			group.Go(func() {
				for operation() == nil {
					done.Add(1)
				}
			})
		}
		for until := int64(round); done.Load() < until; {
			runtime.Gosched()
		}
		check(t, s.Close())
		group.Wait()
		check(t, c.Close())
	}
	c = must[*Context](t)(s.Context(ctx, id))
	defer c.Close()
	for _, m := range must[[]*Message](t)(c.Active().Load(ctx)) {
		check(t, m.Unavailable)
		delete(want, m.ID)
	}
	if len(want) > 0 {
		t.Errorf("%d messages were acknowledged and are not there", len(want))
	}
}
