package erase_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestEraseShared: a payload of another message stays; a message that a fork shows too is erased when that is asked
// for; an unknown id changes nothing.
func TestEraseShared(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10))
	dir := filepath.Dir(folder)
	first := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(3000)})
	kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(3000)})
	other := kit.Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 1))
	own := kit.Append(t, other, engine.Draft{ID: kit.TestID(7), Body: []byte(`{"own":"` + kit.Canary + `"}`)})
	kit.Append(t, c.Active(), engine.Draft{ID: kit.TestID(7), Body: []byte(`{"same id":1}`)})
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	before := kit.Tree(t, folder)
	if _, err := kit.Erase(c.Store, c.ID(), uuid.New(), erase.Options{}); !errors.Is(err, engine.ErrNotExist) {
		t.Errorf("an unknown id: %v", err)
	}
	for _, id := range []uuid.UUID{first.ID, own.ID} {
		for _, dry := range []bool{true, false} {
			if _, err := kit.Erase(c.Store, c.ID(), id, erase.Options{DryRun: dry}); !errors.Is(err, engine.ErrShared) {
				t.Errorf("a message that two branches show: %v", err)
			}
		}
	}
	if kit.Tree(t, folder) != before {
		t.Error("something was changed")
	}
	for _, id := range []uuid.UUID{first.ID, own.ID} {
		if _, err := kit.Erase(c.Store, c.ID(), id, erase.Options{Shared: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	ms := kit.Load(t, c.Active())
	if len(ms) != 3 || kit.BodyOf(ms[1]) != string(kit.Secret(3000)) ||
		!errors.Is(ms[0].Unavailable, engine.ErrErased) || !errors.Is(ms[2].Unavailable, engine.ErrErased) {
		t.Errorf("main: %+v", ms)
	}
	ms = kit.Load(t, other)
	if len(ms) != 2 || !errors.Is(ms[0].Unavailable, engine.ErrErased) || !errors.Is(ms[1].Unavailable, engine.ErrErased) {
		t.Errorf("alt: %+v", ms)
	}
	if found := kit.FilesWith(t, dir, kit.Canary); len(found) != 1 || !strings.HasPrefix(found[0], "blobs/") {
		t.Errorf("the canary is in %v, wanted the payload of the other message alone", found)
	}
}

// TestEraseBesideAWriter: what others append meanwhile, with the very payload that goes, is there afterwards.
func TestEraseBesideAWriter(t *testing.T) {
	ctx := context.Background()
	c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithSealBytes(20_000), engine.WithPool(0))
	var erased []uuid.UUID
	for range 8 {
		erased = append(erased, kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(3000)}).ID)
	}
	bystander := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":0}`)})
	payload := []byte(`{"role":"tool","content":"` + strings.Repeat("wanted again ", 200) + `"}`)
	var group sync.WaitGroup
	said := make([][]uuid.UUID, 2)
	for w := range said {
		group.Add(1)
		go func() {
			defer group.Done()
			own, err := c.Store.Context(ctx, c.ID())
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 100 {
				at, err := own.Active().Append(ctx, engine.Draft{Body: payload})
				if err == nil && i%10 == 0 {
					err = own.Active().Replace(ctx, bystander.ID, engine.Draft{Body: payload})
				}
				if err != nil {
					t.Error(err)
					return
				}
				said[w] = append(said[w], at.ID)
			}
			if err := own.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	for _, id := range erased {
		// A message with the writers' payload goes too: theirs must stay.
		more := kit.Append(t, c.Active(), engine.Draft{Body: payload})
		for _, id := range []uuid.UUID{id, more.ID} {
			if _, err := kit.Erase(c.Store, c.ID(), id, erase.Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	group.Wait()
	fresh := kit.Must[*engine.Context](t)(kit.Must[*engine.Store](t)(kit.Open(filepath.Dir(folder))).Context(ctx, c.ID()))
	defer fresh.Close()
	got := map[uuid.UUID]string{}
	for _, m := range kit.Load(t, fresh.Active()) {
		if m.Unavailable == nil {
			got[m.ID] = kit.BodyOf(m)
		}
	}
	for _, ids := range said {
		for _, id := range ids {
			if got[id] != string(payload) {
				t.Fatalf("message %s: %.60q", id, got[id])
			}
		}
	}
	if len(got) != 201 {
		t.Errorf("%d messages", len(got))
	}
	if found := kit.FilesWith(t, filepath.Dir(folder), kit.Canary); len(found) > 0 {
		t.Errorf("the canary is in %v", found)
	}
}

// TestEraseBeforeBlobs: a payload that a handle was about to make a blob of is not made one after an erase.
func TestEraseBeforeBlobs(t *testing.T) {
	c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.InOrder())
	at := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(3000)})
	if made := kit.BlobFiles(t, filepath.Dir(folder)); len(made) > 0 {
		t.Errorf("there are blobs: %v", made)
	}
	if _, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{}); err != nil {
		t.Fatal(err)
	}
	c.PutBlobs()
	if found := kit.FilesWith(t, filepath.Dir(folder), kit.Canary); len(found) > 0 {
		t.Errorf("the canary is in %v", found)
	}
}

// TestEraseSparesOthers: what lies in the trash and only mentions the message stays as it is.
func TestEraseSparesOthers(t *testing.T) {
	c, folder := kit.NewContext(t)
	at := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(10)})
	item := filepath.Join(folder, "trash", uuid.NewString())
	if err := os.MkdirAll(item, 0o700); err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{
		"item.json":                `{"ctxdir":"trash/1","kind":"damaged","name":"` + at.ID.String() + `.json"}`,
		uuid.NewString() + ".json": "{\n  \"prev\": \"" + at.ID.String() + "\",\n",
		"log-00000000-7.jsonl":     `{"torn":{"id":"x","prev":"` + at.ID.String() + `"` + "\n" + `{"parent":"` + at.ID.String() + `"}` + "\n",
		"tail":                     "kept\n",
	}
	for name, text := range kept {
		if err := os.WriteFile(filepath.Join(item, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mixed := `{"kept":1}` + "\n" +
		`{"body":{"ctxdir":"message/1","id":"` + at.ID.String() + `","message":"` + kit.Canary + `"}}` + "\n" +
		`{"id":"` + at.ID.String() + `",` + "\x00\n"
	if err := os.WriteFile(filepath.Join(item, "log-00000000-8.jsonl"), []byte(mixed), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{}); err != nil {
		t.Fatal(err)
	}
	kept["log-00000000-8.jsonl"] = `{"kept":1}` + "\n"
	for name, text := range kept {
		if b, err := os.ReadFile(filepath.Join(item, name)); err != nil || string(b) != text {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestReplaceErased: a handle that still shows an erased message, as of a stream, cannot give it another body.
func TestReplaceErased(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := kit.NewStore(t)
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	b := c.Active()
	kit.Append(t, b, engine.Draft{ID: kit.TestID(1), Body: []byte(`{"text":"first"}`)})
	kit.Load(t, b)
	if _, err := kit.Erase(s, c.ID(), kit.TestID(1), erase.Options{}); err != nil {
		t.Fatal(err)
	}
	next := engine.Draft{Body: []byte(`{"text":"first, and more"}`)}
	if err := b.Replace(ctx, kit.TestID(1), next); !errors.Is(err, engine.ErrErased) {
		t.Errorf("replaced: %v", err)
	}
	_, err := c.Commit(ctx, func(tx *engine.Tx) error { return tx.Replace("main", kit.TestID(1), next, engine.Shared()) })
	if !errors.Is(err, engine.ErrErased) {
		t.Errorf("replaced by a commit: %v", err)
	}
	kit.Check(t, c.Refresh(ctx))
	if got := kit.Load(t, b); len(got) != 1 || !errors.Is(got[0].Unavailable, engine.ErrErased) {
		t.Errorf("%+v", got)
	}
	kit.Check(t, c.Close())
}
