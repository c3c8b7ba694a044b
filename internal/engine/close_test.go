package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/follow"
	"github.com/ctxdir/ctxdir/internal/listing"
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
		"Context.BlobBytes":     func() error { return only(c.BlobBytes(ctx)) },
		"Context.Branches":      func() error { return only(c.Branches(ctx)) },
		"archiving.Externalise": func() error { return only(archiving.Externalise(ctx, c, 1, false)) },
		"Context.Files":         func() error { return kit.IterationError(c.Files(ctx)) },
		"Context.Flush":         func() error { return c.Flush(ctx) },
		"Context.CommitEdits":   func() error { return only(c.CommitEdits(ctx)) },
		"Context.NewBranch":     func() error { return only(c.NewBranch(ctx, name+" new")) },
		"Context.Refresh":       func() error { return c.Refresh(ctx) },
		"Context.Remove":        func() error { return c.Remove(ctx, "side") },
		"Context.Rename":        func() error { return c.Rename(ctx, "side", name+" renamed") },
		"Context.Rollback":      func() error { return only(migrate.Rollback(ctx, c, path, migrate.RollbackOptions{})) },
		"Context.Sequence":      func() error { return only(follow.Sequence(c)) },
		"Context.Seal":          func() error { return c.Seal(ctx) },
		"Context.Summary":       func() error { return listing.Summarise(c).Problem },
		"Context.Switch":        func() error { return c.Switch(ctx, engine.MainBranch) },
		"Context.SystemPrompt":  func() error { return only(c.SystemPrompt(ctx, engine.MainBranch)) },
		"archiving.Unarchive":   func() error { return only(archiving.Unarchive(ctx, c, nil)) },
		"Context.Commit": func() error {
			return only(c.Commit(ctx, func(tx *engine.Tx) error { return tx.Switch(engine.MainBranch) }))
		},
		"Context.Update": func() error { return c.Update(ctx, func(m *engine.Metadata) error { m.Title += "."; return nil }) },
		"Context.Watch": func() error {
			w, err := follow.WatchContext(ctx, c, follow.FromNow)
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"Branch.Around":      func() error { return only(b.Around(ctx, id, 1, 1)) },
		"Branch.PositionAt":  func() error { return only(b.PositionAt(ctx, time.Now())) },
		"Branch.Append":      func() error { return only(b.Append(ctx, d)) },
		"Branch.Spans":       func() error { return only(b.Spans(0, 1)) },
		"Branch.AppendBatch": func() error { return only(b.AppendBatch(ctx, []engine.Draft{d, d})) },
		"Branch.Between":     func() error { return kit.IterationError(b.Between(ctx, 0, 2)) },
		"Branch.Fork":        func() error { return only(b.Fork(ctx, name+" fork", 0)) },
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
		"Context.Legacy", "Context.Metadata", "Context.Problem", "Branch.Context", "Branch.Name",
	}
	// The packages above the engine call these within an operation of their own.
	within := []string{
		"Context.AddPayloads", "Context.AsView", "Context.AwaitFiles", "Context.AwaitSeal", "Context.Change",
		"Context.CommitDurably", "Context.CommitItems", "Context.Current", "Context.Find", "Context.Superseded",
		"Context.End", "Context.Exclusively", "Context.IDBefore", "Context.MakeDurable", "Context.MakeRoom", "Context.OnRelease",
		"Context.PutBlobs", "Context.ReadMetadata", "Context.References", "Context.ReferencesBeyond", "Context.ReferencesInLines",
		"Context.ReferencesInTrash", "Context.RemovalTime", "Context.ReplaceMetadata", "Context.Scrub", "Context.Spans",
		"Context.State", "Context.Supersede", "Context.Write", "Context.Wrote",
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
	if sum := listing.Summarise(c); sum.Title != "closed" {
		t.Errorf("%+v", sum)
	}
	if kit.Tree(t, dir) != before {
		t.Error("something was written")
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", path, err)
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
	// To a context that is open the log still has it.
	c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
	defer c.Close()
	if now := kit.Must[json.RawMessage](t)(kit.Must[*engine.Message](t)(c.Active().Message(ctx, at.ID)).Body(ctx)); string(now) != body {
		t.Errorf("%s", now)
	}
}
