package engine_test

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
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// everything is all methods of Context and Branch that need files of the context.
func everything(ctx context.Context, c *engine.Context, id uuid.UUID, name, path string) map[string]func() error {
	b := c.Active()
	d := engine.Draft{Body: []byte(`{"role":"user"}`)}
	only := func(_ any, err error) error { return err }
	return map[string]func() error{
		"Context.Archive":      func() error { return only(c.Archive(ctx, engine.ArchiveOptions{})) },
		"Context.BlobBytes":    func() error { return only(c.BlobBytes(ctx)) },
		"Context.Branches":     func() error { return only(c.Branches(ctx)) },
		"Context.Externalise":  func() error { return only(c.Externalise(ctx, 1, false)) },
		"Context.Files":        func() error { return kit.IterationError(c.Files(ctx)) },
		"Context.Fold":         func() error { return c.Fold(ctx) },
		"Context.NewBranch":    func() error { return only(c.NewBranch(ctx, name+" new")) },
		"Context.Refresh":      func() error { return c.Refresh(ctx) },
		"Context.Remove":       func() error { return c.Remove(ctx, "side") },
		"Context.Rename":       func() error { return c.Rename(ctx, "side", name+" renamed") },
		"Context.Rollback":     func() error { return only(migrate.Rollback(ctx, c, path, migrate.RollbackOptions{})) },
		"Context.Sequence":     func() error { return only(follow.Sequence(c)) },
		"Context.Summary":      func() error { return c.Summary().Problem },
		"Context.Switch":       func() error { return c.Switch(ctx, engine.MainBranch) },
		"Context.SystemPrompt": func() error { return only(c.SystemPrompt(ctx, engine.MainBranch)) },
		"Context.Unarchive":    func() error { return only(c.Unarchive(ctx, nil)) },
		"Context.Update":       func() error { return c.Update(ctx, func(m *engine.Metadata) error { m.Title += "."; return nil }) },
		"Context.Watch": func() error {
			w, err := follow.WatchContext(ctx, c, follow.FromNow)
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"Branch.Append":      func() error { return only(b.Append(ctx, d)) },
		"Branch.AppendBatch": func() error { return only(b.AppendBatch(ctx, []engine.Draft{d, d})) },
		"Branch.Between":     func() error { return kit.IterationError(b.Between(ctx, 0, 2)) },
		"Branch.Fork":        func() error { return only(b.Fork(ctx, name+" fork", 0)) },
		"Branch.ForkAt":      func() error { return only(b.ForkAt(ctx, name+" fork at", id)) },
		"Branch.From":        func() error { return kit.IterationError(b.From(ctx, 1)) },
		"Branch.Info":        func() error { return only(b.Info(ctx)) },
		"Branch.Last":        func() error { return only(b.Last(ctx, 2)) },
		"Branch.Len":         func() error { return only(b.Len(ctx)) },
		"Branch.Load":        func() error { return only(b.Load(ctx)) },
		"Branch.Message":     func() error { return only(b.Message(ctx, id)) },
		"Branch.Messages":    func() error { return kit.IterationError(b.Messages(ctx)) },
		"Branch.Range":       func() error { return only(b.Range(ctx, 0, 2)) },
		"Branch.Replace":     func() error { return b.Replace(ctx, id, d, engine.Shared()) },
		"Branch.Rewind": func() error {
			side, err := c.Branch("side")
			if err == nil {
				err = side.Rewind(ctx, 0)
			}
			return err
		},
	}
}

// TestClosed: whatever is asked of a context after Close fails with ErrClosed and writes nothing, but for what is in
// memory. To close it again is no error.
func TestClosed(t *testing.T) {
	ctx := context.Background()
	inMemory := []string{
		"Context.Active", "Context.Branch", "Context.Close", "Context.ID",
		"Context.Legacy", "Context.Metadata", "Context.Problem", "Branch.Name",
	}
	// The packages above the engine call these within an operation of their own.
	within := []string{
		"Context.AsView", "Context.AwaitFold", "Context.Change", "Context.CommitDurably", "Context.Current", "Context.End",
		"Context.Exclusively", "Context.FileFor", "Context.FoldIfDue", "Context.IDBefore", "Context.Latest",
		"Context.MakeRoom", "Context.OnRelease", "Context.OutsidePacks", "Context.PutBlobs", "Context.ReadMetadata",
		"Context.References", "Context.ReferencesInLines", "Context.ReferencesInTrash", "Context.Supersede",
		"Context.WithCurrentFolders", "Context.Write", "Context.WriteMetadata",
	}
	s, dir := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Title: "closed"}))
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"role":"user"}`)})
	kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "side", 1))
	path := filepath.Join(t.TempDir(), "legacy.json")
	all := everything(ctx, c, at.ID, "b", path)
	for _, of := range []reflect.Type{reflect.TypeFor[*engine.Context](), reflect.TypeFor[*engine.Branch]()} {
		for i := range of.NumMethod() {
			name := of.Elem().Name() + "." + of.Method(i).Name
			if _, there := all[name]; there == slices.Contains(slices.Concat(inMemory, within), name) {
				t.Errorf("%s is not looked at, or twice", name)
			}
		}
	}
	released := 0
	c.OnRelease(func() { released++ })
	kit.Check(t, c.Close(), c.Close())
	if released != 1 {
		t.Errorf("what the context needs was let go of %d times", released)
	}
	before := kit.Tree(t, dir)
	for name, operation := range all {
		err := operation()
		if !errors.Is(err, engine.ErrClosed) || errors.Is(err, engine.ErrMetadata) ||
			errors.Is(err, engine.ErrDurability) || errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := c.Branch("side"); err != nil || b.Name() != "side" || c.Active().Name() != engine.MainBranch ||
		c.ID() != c.Metadata().ID || c.Problem() != nil {
		t.Errorf("%v %v %v %v", b, err, c.Metadata(), c.Problem())
	}
	if sum := c.Summary(); sum.Title != "closed" {
		t.Errorf("%+v", sum)
	}
	if kit.Tree(t, dir) != before {
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
	s, dir := kit.NewStore(t, engine.WithFoldBytes(4<<10), engine.WithTextThreshold(100))
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
		var done atomic.Int64
		var closed atomic.Bool
		loaded := kit.Must[*engine.Message](t)(c.Active().Message(ctx, first))
		body := kit.Must[json.RawMessage](t)(loaded.Body(ctx))
		all := everything(ctx, c, first, name, "")
		for _, alone := range []string{"Archive", "Unarchive", "Rollback", "Remove", "Rename"} {
			delete(all, "Context."+alone)
		}
		delete(all, "Branch.Rewind")
		delete(all, "Branch.Replace")
		switch round % 5 {
		case 0:
			all["move"] = func() error {
				_, err := c.Archive(ctx, engine.ArchiveOptions{})
				if err == nil {
					_, err = c.Unarchive(ctx, nil)
				}
				return err
			}
		case 1:
			all["replace"] = func() error { return c.Active().Replace(ctx, first, text("first"), engine.Shared()) }
		}
		all["rename"] = func() error { return c.Rename(ctx, name, name) }
		for _, once := range []string{"Context.NewBranch", "Branch.Fork", "Branch.ForkAt"} {
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
				for last := false; err == nil && !last; done.Add(1) {
					last = closed.Load()
					err = operation()
				}
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, engine.ErrClosed) {
					t.Errorf("round %d: %s: %v", round, name, err)
				}
			})
		}
		for until := int64(round * 3); done.Load() < until; {
			runtime.Gosched()
		}
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
	for f, err := range s.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
		kit.Check(t, err)
		t.Errorf("%s: %+v", dir, f)
	}
}

// TestCloseWaits: Close waits for what is under way, and nothing begins meanwhile.
func TestCloseWaits(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	began, end, updated, closed := make(chan bool), make(chan bool), make(chan error, 1), make(chan error, 2)
	go func() {
		updated <- c.Update(ctx, func(m *engine.Metadata) error {
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
	if !errors.Is(err, engine.ErrClosed) {
		t.Errorf("while it is closed: %v", err)
	}
	if _, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("while it is closed: %v", err)
	}
	select {
	case err := <-closed:
		t.Errorf("closed beside an update: %v", err)
		closed <- err
	default:
	}
	end <- true
	kit.Check(t, <-updated, <-closed, <-closed)
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	defer c.Close()
	if title := c.Metadata().Title; title != "updated" {
		t.Errorf("title %q", title)
	}
}

// TestCloseInIteration: the body of an iteration closes the context. What was read comes still, and then ErrClosed.
func TestCloseInIteration(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t)
	drafts := make([]engine.Draft, 2000)
	for i := range drafts {
		drafts[i].Body = []byte(`{}`)
	}
	kit.Must[[]engine.BatchResult](t)(c.Active().AppendBatch(ctx, drafts))
	n := int64(0)
	var end error
	for m, err := range c.Active().Messages(ctx) {
		if end = err; err != nil {
			break
		}
		kit.Check(t, m.Unavailable)
		if m.Position != n {
			t.Fatalf("message %d at %d", n, m.Position)
		}
		if n++; n == 10 {
			kit.Check(t, c.Close())
		}
	}
	if !errors.Is(end, engine.ErrClosed) || n < 10 {
		t.Errorf("ended behind %d messages: %v", n, end)
	}
}

// TestClosePayloads: payloads of messages that were read before are read when the context was closed. Of one that no
// blob has, the error is ErrClosed too.
func TestClosePayloads(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(100))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	body := `{"text":"` + strings.Repeat("text ", 100) + `"}`
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
	m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID))
	kit.Check(t, c.Close())
	if now := kit.Must[json.RawMessage](t)(m.Body(ctx)); string(now) != body {
		t.Errorf("%s", now)
	}
	for _, ref := range kit.Must[[]engine.Payload](t)(m.Payloads()) {
		kit.Check(t, os.Remove(filepath.Join(dir, filepath.FromSlash(blob.Path(ref.Sum)))))
		_, _, err := m.Open(ref)
		var unavailable *engine.UnavailableError
		if _, berr := m.Body(ctx); !errors.Is(err, engine.ErrClosed) || !errors.Is(berr, engine.ErrClosed) ||
			!errors.As(berr, &unavailable) || !errors.Is(berr, os.ErrNotExist) {
			t.Errorf("%v, %v", err, berr)
		}
	}
	// To a context that is open the journal still has it.
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	defer c.Close()
	if now := kit.Must[json.RawMessage](t)(kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID)).Body(ctx)); string(now) != body {
		t.Errorf("%s", now)
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
		var done atomic.Int64
		var group sync.WaitGroup
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
			func() error { return kit.IterationError(s.List(ctx)) },
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
					done.Add(1)
				}
			})
		}
		for until := int64(round); done.Load() < until; {
			runtime.Gosched()
		}
		kit.Check(t, s.Close())
		group.Wait()
		kit.Check(t, c.Close())
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
