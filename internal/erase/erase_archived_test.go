package erase_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// inside returns the files of a store that hold a text: as they are, and whatever looks like a zstd frame or a part of
// a pack in them decoded, skippable frames too.
func inside(t *testing.T, dir, text string) (paths []string) {
	t.Helper()
	z := kit.Must[*zstd.Decoder](t)(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)))
	defer z.Close()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found := bytes.Contains(b, []byte(text))
		for at := 0; at+4 <= len(b) && !found; at++ {
			if bytes.HasPrefix(b[at:], []byte{0x28, 0xb5, 0x2f, 0xfd}) {
				kit.Check(t, z.Reset(bytes.NewReader(b[at:])))
				part, _ := io.ReadAll(z) // what comes before damage counts
				found = bytes.Contains(part, []byte(text))
			}
		}
		if found {
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	kit.Check(t, err)
	return paths
}

// TestEraseArchived: wherever an archived message lies, after an erase no byte of it is left, and everything else is as
// it was.
func TestEraseArchived(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	archive := func(t *testing.T, c *engine.Context) {
		t.Helper()
		if done := kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{})); done.Messages == 0 || done.Stayed > 0 {
			t.Fatalf("%+v", done)
		}
	}
	pack := func(t *testing.T, folder string) string {
		t.Helper()
		found, _ := filepath.Glob(filepath.Join(folder, "archive", "*.zst"))
		if len(found) != 1 {
			t.Fatalf("packs: %v", found)
		}
		return found[0]
	}
	cases := map[string]func(t *testing.T, c *engine.Context, id uuid.UUID, folder string){
		"archived": func(t *testing.T, c *engine.Context, _ uuid.UUID, _ string) { archive(t, c) },
		"archived and swept": func(t *testing.T, c *engine.Context, _ uuid.UUID, _ string) {
			archive(t, c)
			kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
		},
		"half archived": func(t *testing.T, c *engine.Context, _ uuid.UUID, _ string) {
			archive(t, c)
			kit.Fill(t, c.Active(), 3)
		},
		"replaced since": func(t *testing.T, c *engine.Context, id uuid.UUID, _ string) {
			archive(t, c)
			kit.Check(t, c.Active().Replace(ctx, id, engine.Draft{Body: []byte(`{"n":1}`)}), c.Fold(ctx))
		},
		"replaced since, and archived again": func(t *testing.T, c *engine.Context, id uuid.UUID, _ string) {
			archive(t, c)
			kit.Check(t, c.Active().Replace(ctx, id, engine.Draft{Body: []byte(`{"n":1}`)}), c.Fold(ctx))
			archive(t, c)
		},
		"a newer version in a second pack": func(t *testing.T, c *engine.Context, id uuid.UUID, _ string) {
			archive(t, c)
			body := bytes.Replace(kit.Secret(3000), []byte("{"), []byte(`{"n":7,`), 1)
			kit.Check(t, c.Active().Replace(ctx, id, engine.Draft{Body: body}))
			kit.Must[engine.ArchiveResult](t)(c.Archive(ctx, engine.ArchiveOptions{Branch: engine.MainBranch}))
		},
		"a pack that nobody reads": func(t *testing.T, c *engine.Context, _ uuid.UUID, folder string) {
			archive(t, c)
			b := kit.Must[[]byte](t)(os.ReadFile(pack(t, folder)))
			kit.Must[engine.ArchiveResult](t)(c.Unarchive(ctx, nil))
			kit.Must[uuid.UUID](t)(uuid.NewV7())
			kit.Check(t, os.MkdirAll(filepath.Join(folder, "archive"), 0o700),
				os.WriteFile(filepath.Join(folder, "archive", uuid.Must(uuid.NewV7()).String()+".zst"), b, 0o600))
		},
		"a file left beside the pack": func(t *testing.T, c *engine.Context, id uuid.UUID, folder string) {
			path := filepath.Join(folder, "messages", "branch-main", id.String()+".json")
			b := kit.Must[[]byte](t)(os.ReadFile(path))
			archive(t, c)
			kit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
		},
		"edited by hand beside the pack": func(t *testing.T, c *engine.Context, id uuid.UUID, folder string) {
			path := filepath.Join(folder, "messages", "branch-main", id.String()+".json")
			b := bytes.Replace(kit.Must[[]byte](t)(os.ReadFile(path)), []byte(`"message":{`), []byte(`"message": {"edited": "`+kit.Canary+`", `), 1)
			archive(t, c)
			kit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
		},
		"a damaged pack, repaired": func(t *testing.T, c *engine.Context, _ uuid.UUID, folder string) {
			archive(t, c)
			repaired(t, c, pack(t, folder), func(b []byte) { b[len(b)-1] ^= 1 })
		},
		"a pack whose head is damaged, repaired": func(t *testing.T, c *engine.Context, _ uuid.UUID, folder string) {
			archive(t, c)
			repaired(t, c, pack(t, folder), func(b []byte) { b[15] ^= 0x40 })
		},
		"a copy in the store's trash": func(t *testing.T, c *engine.Context, _ uuid.UUID, folder string) {
			archive(t, c)
			item := filepath.Join(filepath.Dir(folder), "trash", uuid.NewString())
			kit.Check(t, os.CopyFS(filepath.Join(item, c.ID().String()), os.DirFS(folder)))
		},
		"archived, and the index made anew": func(t *testing.T, c *engine.Context, _ uuid.UUID, folder string) {
			archive(t, c)
			kit.Check(t, os.Remove(filepath.Join(folder, "index.json")))
		},
	}
	for name, make := range cases {
		for _, size := range []int{10, 3000, 200_000} {
			if size != 3000 && !strings.Contains(name, "archived") {
				continue
			}
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10), engine.WithFoldBytes(-1))
				dir := filepath.Dir(folder)
				kit.Fill(t, c.Active(), 3)
				at := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(size)})
				keep := fmt.Appendf(nil, `{"parentUuid":"%s","content":"%s"}`, at.ID, strings.Repeat("kept ", 1000))
				for range 2 {
					kit.Append(t, c.Active(), engine.Draft{Body: keep})
				}
				kit.Check(t, c.Fold(ctx))
				make(t, c, at.ID, folder)
				c.PutBlobs()
				kit.Check(t, c.Refresh(ctx))
				if len(inside(t, dir, kit.Canary)) == 0 {
					t.Fatal("the canary is not there")
				}
				want := kit.Load(t, c.Active())
				wanted := kit.Must[[]json.RawMessage](t)(engine.ResolveAll(ctx, slices.Delete(slices.Clone(want), 3, 4)))
				before := kit.Tree(t, dir)
				plan, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{DryRun: true})
				if err != nil || kit.Tree(t, dir) != before {
					t.Fatalf("dry run: %v, or something changed", err)
				}
				packs := func(done []erase.Removal) bool {
					return slices.ContainsFunc(done, func(x erase.Removal) bool { return strings.HasSuffix(filepath.Dir(x.Path), "/archive") })
				}
				if !strings.HasSuffix(name, "repaired") && !packs(plan) {
					t.Errorf("the dry run tells of no pack: %+v", plan)
				}
				done, err := kit.Erase(c.Store, c.ID(), at.ID, erase.Options{})
				kit.Check(t, err)
				for _, x := range plan {
					if !contains(done, x.Path) && (x.Reason != "row of the index" || !strings.Contains(name, "made anew")) {
						t.Errorf("planned and not done: %+v", x)
					}
				}
				if found := inside(t, dir, kit.Canary); len(found) > 0 {
					t.Errorf("the canary is in %v", found)
				}
				verify := func(stage string, c *engine.Context) {
					t.Helper()
					got := kit.Load(t, c.Active())
					if len(got) != len(want) || !errors.Is(got[3].Unavailable, engine.ErrErased) {
						t.Fatalf("%s: %d messages, wanted %d; %v", stage, len(got), len(want), got[3].Unavailable)
					}
					bodies, err := engine.ResolveAll(ctx, slices.Delete(slices.Clone(got), 3, 4))
					kit.Check(t, err)
					for i := range bodies {
						if !bytes.Equal(bodies[i], wanted[i]) {
							t.Errorf("%s: message %d is another one", stage, i)
						}
					}
				}
				kit.Check(t, c.Refresh(ctx))
				verify("a handle that was open", c)
				for _, f := range (&kit.Patient{T: t, Store: c.Store}).Check(true) {
					if f.Severity != engine.SeverityInfo {
						t.Errorf("check: %+v", f)
					}
				}
				done, err = kit.Erase(c.Store, c.ID(), at.ID, erase.Options{})
				if err != nil || len(done) == 0 || done[0].Reason != "already erased" {
					t.Errorf("a second time: %+v, %v", done, err)
				}
				kit.Check(t, c.Close(), os.Remove(filepath.Join(folder, "index.json")))
				again := kit.Must[*engine.Context](t)(c.Store.Context(ctx, c.ID()))
				verify("rebuilt", again)
				kit.Must[engine.ArchiveResult](t)(again.Unarchive(ctx, nil))
				verify("unarchived", again)
				kit.Check(t, again.Close())
			})
		}
	}
}

// repaired damages a pack, and repairs it: it is in the trash then.
func repaired(t *testing.T, c *engine.Context, path string, damage func(b []byte)) {
	t.Helper()
	ctx := context.Background()
	b := kit.Must[[]byte](t)(os.ReadFile(path))
	damage(b)
	kit.Check(t, os.WriteFile(path, b, 0o600))
	for _, err := range c.Store.Repair(ctx, nil, engine.CheckOptions{}) {
		kit.Check(t, err)
	}
	kit.Check(t, c.Refresh(ctx))
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(path)), "trash", "*", filepath.Base(path))); len(found) != 1 {
		t.Fatal("no pack in the trash")
	}
}

// TestEraseArchivedShared: a payload that another archived message has too stays, also where that is in another
// context; one that only the erased message had goes.
func TestEraseArchivedShared(t *testing.T) {
	ctx := context.Background()
	for _, elsewhere := range []bool{false, true} {
		c, folder := kit.NewContext(t, engine.WithTextThreshold(1<<10))
		dir := filepath.Dir(folder)
		first := kit.Append(t, c.Active(), engine.Draft{Body: kit.Secret(3000)})
		other := c
		if elsewhere {
			other = kit.Must[*engine.Context](t)(c.Store.Create(ctx, engine.Metadata{}))
		}
		second := kit.Append(t, other.Active(), engine.Draft{Body: kit.Secret(3000)})
		for _, x := range []*engine.Context{c, other} {
			kit.Must[engine.ArchiveResult](t)(x.Archive(ctx, engine.ArchiveOptions{}))
		}
		kit.Collect(t, c.Store, trash.CollectOptions{Grace: 0})
		_, err := kit.Erase(c.Store, c.ID(), first.ID, erase.Options{})
		kit.Check(t, err, other.Refresh(ctx))
		m := kit.Must[*engine.Message](t)(other.Active().Message(ctx, second.ID))
		if body, err := m.Body(ctx); err != nil || string(body) != string(kit.Secret(3000)) {
			t.Errorf("the other message: %.40s, %v", body, err)
		}
		_, err = kit.Erase(c.Store, other.ID(), second.ID, erase.Options{})
		kit.Check(t, err)
		if found := inside(t, dir, kit.Canary); len(found) > 0 {
			t.Errorf("the canary is in %v", found)
		}
	}
}

// TestEraseFromDamagedPack: an erase does not end while a pack may hold the message in a part that cannot be read;
// after a repair it does, and takes the damaged pack with it.
func TestEraseFromDamagedPack(t *testing.T) {
	t.Parallel()
	unreadable := []string{
		"message frame damaged", "message frame and its rows damaged", "pack cut short",
		"directory and a message frame damaged", "index.json missing, a message frame and its rows damaged",
	}
	for _, d := range kit.PackDamages {
		if !slices.Contains(unreadable, d.Name) {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			p := kit.NewArchivedPatient(t, "all")
			part := p.Part("messages", 1)
			bytes := string(kit.Must[[]byte](t)(os.ReadFile(p.Packs()[0]))[part.From+20:][:60])
			d.Do(p)
			c := kit.Must[*engine.Context](t)(p.Store.Context(context.Background(), p.ID))
			var id uuid.UUID
			for _, m := range kit.Load(t, c.Active()) {
				if m.Unavailable != nil && m.ID != uuid.Nil {
					id = m.ID
				}
			}
			kit.Check(t, c.Close())
			if id == uuid.Nil || len(inside(t, p.Dir, bytes)) != 1 {
				t.Fatalf("%s, %v", id, inside(t, p.Dir, bytes))
			}
			if _, err := kit.Erase(p.Store, p.ID, id, erase.Options{Shared: true}); err == nil && len(inside(t, p.Dir, bytes)) > 0 {
				t.Errorf("erased, and it may be in %v", inside(t, p.Dir, bytes))
			}
			p.Repair(engine.CheckOptions{})
			if found := inside(t, p.Dir, bytes); len(found) != 1 || !strings.HasPrefix(found[0], "trash/") {
				t.Errorf("repaired: it may be in %v", found)
			}
			if _, err := kit.Erase(p.Store, p.ID, id, erase.Options{Shared: true}); err != nil {
				t.Error(err)
			}
			if found := inside(t, p.Dir, bytes); len(found) > 0 {
				t.Errorf("it may be in %v", found)
			}
		})
	}
}
