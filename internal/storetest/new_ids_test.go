package storetest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestNewIDCosts: the append of an id that is greater than all others looks neither at a segment nor at the file of a
// message, however the messages before it are stored.
func TestNewIDCosts(t *testing.T) {
	ctx := context.Background()
	k := newCounted(t, engine.WithSealBytes(-1), engine.WithFiles(engine.FilesHeld))
	c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
	id := uuid.UUID{0: 0xff, 6: 0x40, 8: 0x80}
	reopen := func() error {
		err := c.Close()
		c = kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
		return err
	}
	for _, step := range []func() error{
		func() error { return nil },
		func() error { return c.Seal(ctx) },
		func() error { _, err := c.Active().Fork(ctx, "f", 1); return err },
		reopen,
		func() error { kit.Fill(t, c.Active(), 300); return c.Seal(ctx) },
		reopen,
	} {
		kit.Check(t, step())
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{}`)}) // a first append may mend
		id[15]++
		calls := k.during(func() { kit.Append(t, c.Active(), engine.Draft{ID: id, Body: []byte(`{}`)}) })
		for _, o := range calls {
			if strings.Contains(o.Path, "/segments") || strings.Contains(o.Path, "/messages") {
				t.Errorf("the append of %s: %v", id, o)
			}
		}
	}
	kit.Check(t, c.Close())
}

// TestNewIDWhoseFileExists: if a foreign file has the name of a new message's file, the message is what was committed.
func TestNewIDWhoseFileExists(t *testing.T) {
	ctx := context.Background()
	other := message.Envelope{
		ID: kit.TestID(9), Line: kit.TestID(1), Position: 7, StoredAt: time.Now().UTC(), Branch: "main", Body: []byte(`{"of":"another line"}`),
	}
	for name, content := range map[string]func(line uuid.UUID) []byte{
		"text":  func(uuid.UUID) []byte { return []byte("by hand") },
		"empty": func(uuid.UUID) []byte { return nil },
		"other": func(uuid.UUID) []byte { return other.AppendTo(nil) },
		"an attempt that a power cut took back": func(line uuid.UUID) []byte {
			e := other
			e.Line, e.Position, e.Body = line, 1, []byte(`{"the":"attempt"}`)
			return e.AppendTo(nil)
		},
	} {
		s, dir := kit.NewStore(t)
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(8), Body: []byte(`{"n":0}`)})
		kit.Check(t, c.Flush(ctx))
		path := filepath.Join(dir, c.ID().String(), "messages", "branch-main", kit.TestID(9).String()+".json")
		kit.Check(t, os.WriteFile(path, content(c.Metadata().Lines[0].ID), 0o600))
		body := `{"n":1}`
		at := kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(9), Body: []byte(body)})
		if at.Existed || at.Position != 1 {
			t.Fatalf("%s: %+v", name, at)
		}
		shows := func(when string) {
			t.Helper()
			m, err := c.Active().Message(ctx, kit.TestID(9))
			if err != nil || m.Unavailable != nil || string(m.Stored) != body {
				t.Errorf("%s: %s: %+v, %v", name, when, m, err)
			}
		}
		_ = c.Flush(ctx)
		shows("after the append")
		if err := c.Close(); err != nil && !errors.Is(err, engine.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		shows("after a reopening")
		kit.Check(t, c.Seal(ctx))
		shows("after a seal")
		kit.Check(t, c.Close())
		c = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID()))
		shows("after a seal and a reopening")
		kit.Check(t, c.Close())
	}
}
