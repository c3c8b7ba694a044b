package engine

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

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// inside returns the files of a store that hold a text: as they are, and whatever looks like a zstd frame or a part of
// a pack in them decoded, skippable frames too.
func inside(t *testing.T, dir, text string) (paths []string) {
	t.Helper()
	z := must[*zstd.Decoder](t)(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)))
	defer z.Close()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found := bytes.Contains(b, []byte(text))
		for at := 0; at+4 <= len(b) && !found; at++ {
			if bytes.HasPrefix(b[at:], []byte{0x28, 0xb5, 0x2f, 0xfd}) {
				check(t, z.Reset(bytes.NewReader(b[at:])))
				part, _ := io.ReadAll(z) // what comes before damage counts
				found = bytes.Contains(part, []byte(text))
			}
		}
		if found {
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	check(t, err)
	return paths
}

// TestEraseArchived: wherever an archived message lies, after an erase no byte of it is left, and everything else is as it was.
func TestEraseArchived(t *testing.T) {
	ctx := context.Background()
	archive := func(t *testing.T, c *Context) {
		t.Helper()
		if done := must[Archived](t)(c.Archive(ctx, ArchiveOptions{})); done.Messages == 0 || done.Stayed > 0 {
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
	cases := map[string]func(t *testing.T, c *Context, id uuid.UUID, folder string){
		"archived": func(t *testing.T, c *Context, _ uuid.UUID, _ string) { archive(t, c) },
		"archived and swept": func(t *testing.T, c *Context, _ uuid.UUID, _ string) {
			archive(t, c)
			collect(t, c.store, Collecting{Grace: 0})
		},
		"half archived": func(t *testing.T, c *Context, _ uuid.UUID, _ string) {
			archive(t, c)
			fill(t, c.Active(), 3)
		},
		"replaced since": func(t *testing.T, c *Context, id uuid.UUID, _ string) {
			archive(t, c)
			check(t, c.Active().Replace(ctx, id, Draft{Body: []byte(`{"n":1}`)}), c.Fold(ctx))
		},
		"replaced since, and archived again": func(t *testing.T, c *Context, id uuid.UUID, _ string) {
			archive(t, c)
			check(t, c.Active().Replace(ctx, id, Draft{Body: []byte(`{"n":1}`)}), c.Fold(ctx))
			archive(t, c)
		},
		"a newer version in a second pack": func(t *testing.T, c *Context, id uuid.UUID, _ string) {
			archive(t, c)
			body := bytes.Replace(secret(3000), []byte("{"), []byte(`{"n":7,`), 1)
			check(t, c.Active().Replace(ctx, id, Draft{Body: body}))
			must[Archived](t)(c.Archive(ctx, ArchiveOptions{Branch: MainBranch}))
		},
		"a pack that nobody reads": func(t *testing.T, c *Context, _ uuid.UUID, folder string) {
			archive(t, c)
			b := must[[]byte](t)(os.ReadFile(pack(t, folder)))
			must[Archived](t)(c.Unarchive(ctx, nil))
			must[uuid.UUID](t)(uuid.NewV7())
			check(t, os.MkdirAll(filepath.Join(folder, "archive"), 0o700),
				os.WriteFile(filepath.Join(folder, "archive", uuid.Must(uuid.NewV7()).String()+".zst"), b, 0o600))
		},
		"a file left beside the pack": func(t *testing.T, c *Context, id uuid.UUID, folder string) {
			path := filepath.Join(folder, "messages", "branch-main", id.String()+".json")
			b := must[[]byte](t)(os.ReadFile(path))
			archive(t, c)
			check(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
		},
		"edited by hand beside the pack": func(t *testing.T, c *Context, id uuid.UUID, folder string) {
			path := filepath.Join(folder, "messages", "branch-main", id.String()+".json")
			b := bytes.Replace(must[[]byte](t)(os.ReadFile(path)), []byte(`"message":{`), []byte(`"message": {"edited": "`+canary+`", `), 1)
			archive(t, c)
			check(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
		},
		"a damaged pack, repaired": func(t *testing.T, c *Context, _ uuid.UUID, folder string) {
			archive(t, c)
			repaired(t, c, pack(t, folder), func(b []byte) { b[len(b)-1] ^= 1 })
		},
		"a pack whose head is damaged, repaired": func(t *testing.T, c *Context, _ uuid.UUID, folder string) {
			archive(t, c)
			repaired(t, c, pack(t, folder), func(b []byte) { b[15] ^= 0x40 })
		},
		"a copy in the store's trash": func(t *testing.T, c *Context, _ uuid.UUID, folder string) {
			archive(t, c)
			item := filepath.Join(filepath.Dir(folder), "trash", uuid.NewString())
			check(t, os.CopyFS(filepath.Join(item, c.ID().String()), os.DirFS(folder)))
		},
		"archived, and the index made anew": func(t *testing.T, c *Context, _ uuid.UUID, folder string) {
			archive(t, c)
			check(t, os.Remove(filepath.Join(folder, "index.json")))
		},
	}
	for name, make := range cases {
		for _, size := range []int{10, 3000, 200_000} {
			if size != 3000 && !strings.Contains(name, "archived") {
				continue
			}
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				c, folder := newContext(t, WithTextThreshold(1<<10), WithFoldBytes(-1))
				dir := filepath.Dir(folder)
				fill(t, c.Active(), 3)
				at := must[Appended](t)(c.Active().Append(ctx, Draft{Body: secret(size)}))
				keep := fmt.Appendf(nil, `{"parentUuid":"%s","content":"%s"}`, at.ID, strings.Repeat("kept ", 1000))
				for range 2 {
					must[Appended](t)(c.Active().Append(ctx, Draft{Body: keep}))
				}
				check(t, c.Fold(ctx))
				make(t, c, at.ID, folder)
				c.PutBlobs()
				check(t, c.Refresh(ctx))
				if len(inside(t, dir, canary)) == 0 {
					t.Fatal("the canary is not there")
				}
				want := must[[]*Message](t)(c.Active().Load(ctx))
				wanted := must[[]json.RawMessage](t)(ResolveAll(ctx, slices.Delete(slices.Clone(want), 3, 4)))
				before := tree(t, dir)
				plan, err := erase(c.store, c.ID(), at.ID, EraseOptions{DryRun: true})
				if err != nil || tree(t, dir) != before {
					t.Fatalf("dry run: %v, or something changed", err)
				}
				packs := func(done []Erased) bool {
					return slices.ContainsFunc(done, func(x Erased) bool { return strings.HasSuffix(filepath.Dir(x.Path), "/archive") })
				}
				if !strings.HasSuffix(name, "repaired") && !packs(plan) {
					t.Errorf("the dry run tells of no pack: %+v", plan)
				}
				done, err := erase(c.store, c.ID(), at.ID, EraseOptions{})
				check(t, err)
				for _, x := range plan {
					if !contains(done, x.Path) && (x.Reason != "row of the index" || !strings.Contains(name, "made anew")) {
						t.Errorf("planned and not done: %+v", x)
					}
				}
				if found := inside(t, dir, canary); len(found) > 0 {
					t.Errorf("the canary is in %v", found)
				}
				verify := func(stage string, c *Context) {
					t.Helper()
					got := must[[]*Message](t)(c.Active().Load(ctx))
					if len(got) != len(want) || !errors.Is(got[3].Unavailable, ErrErased) {
						t.Fatalf("%s: %d messages, wanted %d; %v", stage, len(got), len(want), got[3].Unavailable)
					}
					bodies, err := ResolveAll(ctx, slices.Delete(slices.Clone(got), 3, 4))
					check(t, err)
					for i := range bodies {
						if !bytes.Equal(bodies[i], wanted[i]) {
							t.Errorf("%s: message %d is another one", stage, i)
						}
					}
				}
				check(t, c.Refresh(ctx))
				verify("a handle that was open", c)
				for _, f := range (&patient{t: t, store: c.store}).check(true) {
					if f.Severity != SeverityInfo {
						t.Errorf("check: %+v", f)
					}
				}
				done, err = erase(c.store, c.ID(), at.ID, EraseOptions{})
				if err != nil || len(done) == 0 || done[0].Reason != "already erased" {
					t.Errorf("a second time: %+v, %v", done, err)
				}
				check(t, c.Close(), os.Remove(filepath.Join(folder, "index.json")))
				again := must[*Context](t)(c.store.Context(ctx, c.ID()))
				verify("rebuilt", again)
				must[Archived](t)(again.Unarchive(ctx, nil))
				verify("unarchived", again)
				check(t, again.Close())
			})
		}
	}
}

// repaired damages a pack, and repairs it: it is in the trash then.
func repaired(t *testing.T, c *Context, path string, damage func(b []byte)) {
	t.Helper()
	ctx := context.Background()
	b := must[[]byte](t)(os.ReadFile(path))
	damage(b)
	check(t, os.WriteFile(path, b, 0o600))
	for _, err := range c.store.Repair(ctx, nil, CheckOptions{}) {
		check(t, err)
	}
	check(t, c.Refresh(ctx))
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(path)), "trash", "*", filepath.Base(path))); len(found) != 1 {
		t.Fatal("no pack in the trash")
	}
}

// TestEraseArchivedShared: a payload that another archived message has too stays, also where that is in another context; one
// that only the erased message had goes.
func TestEraseArchivedShared(t *testing.T) {
	ctx := context.Background()
	for _, elsewhere := range []bool{false, true} {
		c, folder := newContext(t, WithTextThreshold(1<<10))
		dir := filepath.Dir(folder)
		first := must[Appended](t)(c.Active().Append(ctx, Draft{Body: secret(3000)}))
		other := c
		if elsewhere {
			other = must[*Context](t)(c.store.Create(ctx, Metadata{}))
		}
		second := must[Appended](t)(other.Active().Append(ctx, Draft{Body: secret(3000)}))
		for _, x := range []*Context{c, other} {
			must[Archived](t)(x.Archive(ctx, ArchiveOptions{}))
		}
		collect(t, c.store, Collecting{Grace: 0})
		_, err := erase(c.store, c.ID(), first.ID, EraseOptions{})
		check(t, err, other.Refresh(ctx))
		m := must[*Message](t)(other.Active().Message(ctx, second.ID))
		if body, err := m.Body(ctx); err != nil || string(body) != string(secret(3000)) {
			t.Errorf("the other message: %.40s, %v", body, err)
		}
		_, err = erase(c.store, other.ID(), second.ID, EraseOptions{})
		check(t, err)
		if found := inside(t, dir, canary); len(found) > 0 {
			t.Errorf("the canary is in %v", found)
		}
	}
}

// TestEraseFromDamagedPack: an erase does not end while a pack may hold the message in a part that cannot be read;
// after a repair it does, and takes the damaged pack with it.
func TestEraseFromDamagedPack(t *testing.T) {
	unreadable := []string{
		"message frame damaged", "message frame and its rows damaged", "pack cut short",
		"directory and a message frame damaged", "index.json missing, a message frame and its rows damaged",
	}
	for _, d := range archivedDamages {
		if !slices.Contains(unreadable, d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			p := newArchived(t, "all")
			part := p.part("messages", 1)
			bytes := string(must[[]byte](t)(os.ReadFile(p.packs()[0]))[part.from+20:][:60])
			d.do(p)
			c := must[*Context](t)(p.store.Context(context.Background(), p.id))
			var id uuid.UUID
			for _, m := range must[[]*Message](t)(c.Active().Load(context.Background())) {
				if m.Unavailable != nil && m.ID != uuid.Nil {
					id = m.ID
				}
			}
			check(t, c.Close())
			if id == uuid.Nil || len(inside(t, p.dir, bytes)) != 1 {
				t.Fatalf("%s, %v", id, inside(t, p.dir, bytes))
			}
			if _, err := erase(p.store, p.id, id, EraseOptions{Shared: true}); err == nil && len(inside(t, p.dir, bytes)) > 0 {
				t.Errorf("erased, and it may be in %v", inside(t, p.dir, bytes))
			}
			p.repair(CheckOptions{})
			if found := inside(t, p.dir, bytes); len(found) != 1 || !strings.HasPrefix(found[0], "trash/") {
				t.Errorf("repaired: it may be in %v", found)
			}
			if _, err := erase(p.store, p.id, id, EraseOptions{Shared: true}); err != nil {
				t.Error(err)
			}
			if found := inside(t, p.dir, bytes); len(found) > 0 {
				t.Errorf("it may be in %v", found)
			}
		})
	}
}
