package storetest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestAdopt: messages that were put there by hand are told of and left alone; adopted, one that goes on where its line
// ends is the line's next, and those that contradict a line get a branch of their own.
func TestAdopt(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, false)
	next := p.Foreign("branch-main", 40)
	other := []uuid.UUID{p.Foreign("branch-main", 35), p.Foreign("branch-alt", 36)}
	found, lost := p.Heal(engine.CheckOptions{})
	if len(found) != 3 || lost > 0 {
		t.Fatalf("%d lost, found %+v", lost, found)
	}
	// heal appended a message: what went on at the end contradicts it now.
	if done := p.Repair(engine.CheckOptions{Adopt: true}); len(done) != 3 {
		t.Fatalf("%+v", done)
	}
	if again := p.Repair(engine.CheckOptions{Adopt: true}); len(again) > 0 {
		t.Errorf("adopted again: %+v", again)
	}
	if found := p.Check(true); len(found) > 0 {
		t.Errorf("after adoption: %+v", found)
	}
	c := kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
	defer c.Close()
	all := p.Read(c)
	if len(all) != 5 || len(all["main"]) != 41 {
		t.Fatalf("%d branches, main has %d messages", len(all), len(all["main"]))
	}
	for name, from := range map[string][]uuid.UUID{"main (found)": other, "main (found) 2": {next}} {
		got := all[name]
		n := len(got) - len(from)
		if n < 0 {
			t.Fatalf("branch %q has %d messages", name, len(got))
		}
		for i, id := range from {
			if got[n+i].ID != id || got[n+i].Text == "" {
				t.Errorf("branch %q, position %d: %+v", name, n+i, got[n+i])
			}
		}
		for i := range n {
			if got[i] != p.Want["main"][i] {
				t.Errorf("branch %q, position %d: %+v", name, i, got[i])
			}
		}
	}

	p = kit.NewPatient(t, true)
	next = p.Foreign("branch-main", 40)
	if done := p.Repair(engine.CheckOptions{Adopt: true}); len(done) != 1 {
		t.Fatalf("%+v", done)
	}
	c = kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
	defer c.Close()
	if got := p.Read(c)["main"]; len(got) != 41 || got[40].ID != next {
		t.Errorf("main has %d messages", len(got))
	}
}

// TestUnreadable: a message file that cannot be read is told of; it is written again where a journal has the message,
// and else left alone: it may be whole.
func TestUnreadable(t *testing.T) {
	ctx := context.Background()
	for _, second := range []bool{true, false} {
		disk := crashfs.New()
		s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithFoldBytes(-1), engine.WithoutPause()))
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
		kit.Fill(t, c.Active(), 5)
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		if !second {
			if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
				t.Fatal(err)
			}
		}
		id := kit.Load(t, c.Active())[2].ID
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		var readable atomic.Bool
		disk.Fail(func(o crashfs.Op) error {
			if strings.HasSuffix(o.To, id.String()+".json") { // a new file can be read
				readable.Store(true)
			}
			ofMessage := strings.HasSuffix(o.Path, id.String()+".json") && !strings.Contains(o.Path, "trash")
			if ofMessage && !readable.Load() && (o.Kind == crashfs.KindOpen || o.Kind == crashfs.KindRead) {
				return syscall.EACCES
			}
			return nil
		})
		p := &kit.Patient{T: t, Store: s, ID: c.ID()}
		found := p.Check(false)
		found = append(found, p.Check(true)...)
		if len(found) != 1 || found[0].Kind != integrity.KindUnread || found[0].ID != id || found[0].Repairable != second {
			t.Errorf("journals %v: found %+v", second, found)
		}
		p.Repair(engine.CheckOptions{})
		readable.Store(true)
		if found := p.Check(true); len(found) > 0 {
			t.Errorf("journals %v: after repair, readable again: %+v", second, found)
		}
	}
}

// TestCopiedContext: a context's folder that was copied under another id is a context of its own after a repair.
func TestCopiedContext(t *testing.T) {
	for _, second := range []bool{false, true} {
		p := kit.NewPatient(t, second)
		id := uuid.New()
		dir := filepath.Join(p.Store.Path(), id.String())
		if err := os.CopyFS(dir, os.DirFS(p.Dir)); err != nil {
			t.Fatal(err)
		}
		found := p.Check(true)
		if len(found) == 0 {
			t.Error("check told nothing")
		}
		for _, f := range found {
			if f.Context != id {
				t.Errorf("about the other one: %+v", f)
			}
		}
		p.ID, p.Dir = id, dir
		if _, lost := p.Heal(engine.CheckOptions{}); lost > 0 {
			t.Errorf("%d messages of the copy are gone", lost)
		}
		c := kit.Must[*engine.Context](t)(p.Store.Context(context.Background(), id))
		if c.Metadata().Title != "a title" {
			t.Errorf("title %q", c.Metadata().Title)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecoveryCosts: what the first append after a crash reads grows with the journal, and not with the context.
func TestRecoveryCosts(t *testing.T) {
	ctx := context.Background()
	cost := func(messages int) (files, bytesRead int64) {
		k := newCounted(t, engine.WithFoldBytes(-1))
		c := kit.Must[*engine.Context](t)(k.store.Create(ctx, engine.Metadata{}))
		for range messages / 500 {
			kit.Fill(t, c.Active(), 500)
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		kit.Fill(t, c.Active(), 10)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		k.tear(t, c.ID())
		again := kit.Must[*engine.Context](t)(k.store.Context(ctx, c.ID()))
		defer again.Close()
		calls := k.during(func() {
			kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{"a":1}`)})
		})
		for _, o := range calls {
			switch o.Kind {
			case crashfs.KindOpen:
				files++
			case crashfs.KindRead:
				bytesRead += o.Size
			}
		}
		return files, bytesRead
	}
	files, size := cost(500)
	manyFiles, manySize := cost(5000)
	if manyFiles > files || manySize > size+size/10 {
		t.Errorf("%d files and %d bytes for 500 messages, %d and %d for 5,000", files, size, manyFiles, manySize)
	}
}

// tear leaves half a record behind a context's newest journal.
func (k *counted) tear(t *testing.T, id uuid.UUID) {
	t.Helper()
	folder := kit.Must[interface {
		Close() error
	}](t)(k.disk.Sub(id.String()))
	defer folder.Close()
	f, err := k.disk.OpenFile(id.String()+"/journal-2.jsonl", os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw := make([]byte, 1<<20)
	n, _ := f.ReadAt(raw, 0)
	end := int64(len(bytes.TrimRight(raw[:n], "\n"))) + 1
	if _, err := f.WriteAt([]byte(`{"chain":"0123456789abcdef","prev":"`), end); err != nil {
		t.Fatal(err)
	}
}
