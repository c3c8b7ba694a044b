package erase_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// TestErase: wherever a message lies, after an erase no byte of it is left, and everything else is as it was.
func TestErase(t *testing.T) {
	ctx := context.Background()
	fold := func(t *testing.T, c *engine.Context) {
		t.Helper()
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]func(t *testing.T, c *engine.Context, id uuid.UUID, folder string){
		"journal": func(*testing.T, *engine.Context, uuid.UUID, string) {},
		"folded": func(t *testing.T, c *engine.Context, _ uuid.UUID, _ string) {
			if err := c.Log.Fold(ctx, false); err != nil {
				t.Fatal(err)
			}
		},
		"settled": func(t *testing.T, c *engine.Context, _ uuid.UUID, _ string) { fold(t, c) },
		"replaced twice": func(t *testing.T, c *engine.Context, id uuid.UUID, _ string) {
			for n := range 2 {
				body := bytes.Replace(kit.Secret(3000), []byte("{"), fmt.Appendf(nil, `{"n":%d,`, n), 1)
				if err := c.Active().Replace(ctx, id, engine.Draft{Body: body}); err != nil {
					t.Fatal(err)
				}
				fold(t, c)
			}
		},
		"replaced by something harmless": func(t *testing.T, c *engine.Context, id uuid.UUID, _ string) {
			fold(t, c)
			if err := c.Active().Replace(ctx, id, engine.Draft{Body: []byte(`{"n":1}`)}); err != nil {
				t.Fatal(err)
			}
		},
		"edited by hand": func(t *testing.T, c *engine.Context, id uuid.UUID, folder string) {
			fold(t, c)
			path := filepath.Join(folder, "messages", "branch-main", id.String()+".json")
			b := kit.Must[[]byte](t)(os.ReadFile(path))
			b = bytes.Replace(b, []byte(`"message":{`), []byte(`"message": {"edited": "`+kit.Canary+`", `), 1)
			for _, p := range []string{path, path + "~", filepath.Join(filepath.Dir(path), "."+id.String()+".json.swp")} {
				if err := os.WriteFile(p, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		"rebuilt": func(t *testing.T, c *engine.Context, _ uuid.UUID, folder string) {
			if err := os.Remove(filepath.Join(folder, "index.json")); err != nil {
				t.Fatal(err)
			}
			journal := filepath.Join(folder, "journal-1.jsonl")
			kit.Write(t, journal, append(kit.Must[[]byte](t)(os.ReadFile(journal)), "torn"...))
			again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
			kit.Fill(t, again.Active(), 1)
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			if found, _ := filepath.Glob(filepath.Join(folder, "trash", "*", "journal-1.jsonl")); len(found) == 0 {
				t.Fatal("no journal in the trash")
			}
		},
		"a copy in the store's trash": func(t *testing.T, c *engine.Context, _ uuid.UUID, folder string) {
			fold(t, c)
			item := filepath.Join(filepath.Dir(folder), "trash", uuid.NewString())
			if err := os.CopyFS(filepath.Join(item, c.ID().String()), os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, make := range cases {
		for _, size := range []int{10, 3000, 200_000} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithFoldBytes(-1))
				dir := filepath.Dir(folder)
				kit.Fill(t, c.Active(), 3)
				at := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(size)})
				keep := fmt.Appendf(nil, `{"parentUuid":"%s","content":"%s"}`, at.ID, strings.Repeat("kept ", 1000))
				kit.Append(t, c.Active(), engine.Draft{Body: keep})
				kept := kit.Append(t, c.Active(), engine.Draft{Body: keep})
				if err := c.Active().Replace(ctx, kept.ID, engine.Draft{Body: []byte(`{"final":1}`)}); err != nil {
					t.Fatal(err)
				}
				make(t, c, at.ID, folder)
				if len(kit.FilesWith(t, dir, kit.Canary)) == 0 {
					t.Fatal("the canary is not there")
				}
				c.PutBlobs() // or the blob comes while trees are compared
				want := kit.Load(t, kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID())).Active())
				file := filepath.Join(folder, "messages", "branch-main", at.ID.String()+".json")
				raw := kit.Must[[]byte](t)(os.ReadFile(file))
				before := kit.Tree(t, dir)
				plan, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{DryRun: true})
				if err != nil || kit.Tree(t, dir) != before {
					t.Fatalf("dry run: %v, or something changed", err)
				}
				done, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range plan {
					if !contains(done, x.Path) {
						t.Errorf("planned and not done: %+v", x)
					}
				}
				if found := kit.FilesWith(t, dir, kit.Canary); len(found) > 0 {
					t.Errorf("the canary is in %v", found)
				}
				if len(kit.FilesWith(t, folder+"/trash", `"parentUuid":"`+at.ID.String())) == 0 && len(kit.FilesWith(t, dir, "kept kept")) < 2 {
					t.Error("the old version of another message is gone")
				}
				check := func(stage string, c *engine.Context, lost bool) {
					t.Helper()
					got := kit.Load(t, c.Active())
					if len(got) != len(want) {
						t.Fatalf("%s: %d messages, wanted %d", stage, len(got), len(want))
					}
					for i, m := range got {
						switch {
						case m.ID != want[i].ID || m.Position != int64(i):
							t.Errorf("%s: position %d has %s", stage, i, m.ID)
						case m.ID != at.ID && (m.Unavailable != nil || kit.BodyOf(m) != kit.BodyOf(want[i])):
							t.Errorf("%s: message %d: %v", stage, i, m.Unavailable)
						case m.ID == at.ID && (m.Unavailable == nil || !lost && !errors.Is(m.Unavailable, engine.ErrErased)):
							t.Errorf("%s: the erased message: %v", stage, m.Unavailable)
						}
					}
				}
				if err := c.Refresh(ctx); err != nil {
					t.Fatal(err)
				}
				check("a handle that was open", c, false)
				again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				check("a new handle", again, false)
				done, err = kit.Erase(c.Store, c.ID(), at.ID, erase.Options{})
				if err != nil || len(done) != 1 && name != "a copy in the store's trash" || done[0].Reason != "already erased" {
					t.Errorf("a second time: %+v, %v", done, err)
				}
				// Nothing brings it back, not even its file.
				if err := os.WriteFile(file, raw, 0o600); err != nil {
					t.Fatal(err)
				}
				again = kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				check("the file is back", again, false)
				if err := os.Remove(filepath.Join(folder, "index.json")); err != nil {
					t.Fatal(err)
				}
				again = kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				check("rebuilt from rows", again, false)
				journals, _ := filepath.Glob(filepath.Join(folder, "journal-*"))
				for _, j := range journals {
					if err := os.Remove(j); err != nil {
						t.Fatal(err)
					}
				}
				again = kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				check("rebuilt from rows and files", again, false)
				if err := errors.Join(os.Remove(file), os.RemoveAll(filepath.Join(folder, "index"))); err != nil {
					t.Fatal(err)
				}
				again = kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				check("rebuilt from message files", again, true)
			})
		}
	}
}

func contains(done []erase.Removal, path string) bool {
	for _, x := range done {
		if x.Path == path {
			return true
		}
	}
	return false
}

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
	if err := c.Fold(ctx); err != nil {
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
	c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithFoldBytes(20_000), engine.WithPool(0))
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
		"journal-7.jsonl":          `{"torn":{"id":"x","prev":"` + at.ID.String() + `"` + "\n" + `{"parent":"` + at.ID.String() + `"}` + "\n",
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
	if err := os.WriteFile(filepath.Join(item, "journal-8.jsonl"), []byte(mixed), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{}); err != nil {
		t.Fatal(err)
	}
	kept["journal-8.jsonl"] = `{"kept":1}` + "\n"
	for name, text := range kept {
		if b, err := os.ReadFile(filepath.Join(item, name)); err != nil || string(b) != text {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
