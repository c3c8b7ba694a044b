package storetest_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// obstacles are things that are neither a blob nor a folder of blobs.
var obstacles = map[string]func(t *testing.T, path string){
	"folder": func(t *testing.T, path string) {
		if err := os.MkdirAll(filepath.Join(path, "with", "something"), 0o700); err != nil {
			t.Fatal(err)
		}
	},
	"file": func(t *testing.T, path string) {
		if err := os.WriteFile(path, []byte("something"), 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"link to nothing": func(t *testing.T, path string) {
		if err := os.Symlink("nothing", path); err != nil {
			t.Skipf("it cannot be made here: %v", err)
		}
	},
	"link out of the store": func(t *testing.T, path string) {
		if err := os.Symlink(t.TempDir(), path); err != nil {
			t.Skipf("it cannot be made here: %v", err)
		}
	},
}

// setAsideIn returns the things of a kind in a store's trash, as paths.
func setAsideIn(t *testing.T, dir, kind string) (paths []string) {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(dir, "trash", "*", "item.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range notes {
		b, err := os.ReadFile(note)
		var item ctxfolder.TrashItem
		if err == nil {
			err = json.Unmarshal(b, &item)
		}
		if err != nil {
			t.Fatal(err)
		}
		if item.Kind == kind {
			paths = append(paths, filepath.Join(filepath.Dir(note), item.Name))
		}
	}
	return paths
}

// TestInTheWay: what lies where a blob or its folders belong keeps neither a seal nor an append from its work, and goes
// to the trash as it is.
func TestInTheWay(t *testing.T) {
	ctx := context.Background()
	small, large := strings.Repeat("small ", 1_000), strings.Repeat("large ", 20_000)
	for what, put := range obstacles {
		for depth, where := range []string{"as blobs", "as the folder in it", "as the folder in that", "as the blob"} {
			for how, text := range map[string]string{"seal": small, "append": large} {
				if what == "file" && depth == 3 || what == "folder" && depth < 3 {
					continue // it is one: a damaged blob, a folder of blobs
				}
				t.Run(what+" "+where+", "+how, func(t *testing.T) {
					s, dir := kit.NewStore(t, engine.WithSealBytes(-1), engine.WithTextThreshold(100))
					c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
					name := blob.Path(blob.SumOf([]byte(text)))
					at := filepath.Join(append([]string{dir}, strings.Split(name, "/")[:depth+1]...)...)
					if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
						t.Fatal(err)
					}
					put(t, at)
					was, err := os.Lstat(at)
					if err != nil {
						t.Fatal(err)
					}
					body := `{"text":"` + text + `"}`
					id := kit.Must[engine.AppendResult](t)(c.Active().Append(ctx, engine.Draft{Body: []byte(body)})).ID
					if err := c.Seal(ctx); err != nil {
						t.Fatal(err)
					}
					if got := kit.BodyOf(kit.Must[*engine.Message](t)(c.Active().Message(ctx, id))); got != body {
						t.Errorf("%.100s", got)
					}
					if err := s.Blobs.Verify(blob.SumOf([]byte(text))); err != nil {
						t.Error(err)
					}
					found := setAsideIn(t, dir, "damaged")
					if len(found) != 1 {
						t.Fatalf("in the trash: %v", found)
					}
					if is, err := os.Lstat(found[0]); err != nil || is.Mode() != was.Mode() || !os.SameFile(is, was) {
						t.Errorf("in the trash: %v, %v, wanted %v", is, err, was)
					}
				})
			}
		}
	}
}

// TestInTheWayOfMany: of many writers that meet the same thing one takes it away, and none takes away the blob that
// another one has put there.
func TestInTheWayOfMany(t *testing.T) {
	s, dir := kit.NewStore(t)
	payload := []byte(strings.Repeat("payload ", 1_000))
	sum := blob.SumOf(payload)
	obstacles["folder"](t, filepath.Join(dir, filepath.FromSlash(blob.Path(sum))))
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			put := s.Blobs.Put
			if i%2 == 0 {
				put = s.Blobs.PutUnsynced
			}
			if _, _, err := put(payload); err != nil {
				t.Error(err)
			}
			if err := s.Blobs.Verify(sum); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if found := setAsideIn(t, dir, "damaged"); len(found) != 1 {
		t.Errorf("in the trash: %v", found)
	}
}
