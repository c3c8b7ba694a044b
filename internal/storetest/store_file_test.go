package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestStoreFile: a store whose ctxdir.json is damaged can be read, is told of, and is mended with its own id.
func TestStoreFile(t *testing.T) {
	ctx := context.Background()
	put := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { kit.Write(t, path, []byte(text)) }
	}
	for name, damage := range map[string]func(t *testing.T, path string){
		"missing":         func(t *testing.T, path string) { kit.Check(t, os.Remove(path)) },
		"empty":           put(""),
		"zeros":           put(strings.Repeat("\x00", 300)),
		"mark alone":      put("\ufeff"),
		"truncated":       func(t *testing.T, path string) { kit.Check(t, os.Truncate(path, 40)) },
		"no object":       put("[]"),
		"an empty object": put("{}"),
		"null":            put("null"),
		"another kind":    put(`{"ctxdir":"context/1","id":"0198c0de-0000-7000-8000-00000000abcd"}`),
		"without id":      put(`{"ctxdir":"store/1"}`),
		"too large":       func(t *testing.T, path string) { kit.Check(t, os.Truncate(path, 2<<20)) },
		"folder":          func(t *testing.T, path string) { kit.Check(t, os.Remove(path), os.Mkdir(path, 0o700)) },
		"leads elsewhere": func(t *testing.T, path string) { kit.Check(t, os.Rename(path, path+"x"), os.Symlink(path+"x", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			c, folder := kit.NewContext(t, engine.WithTextThreshold(100), engine.WithSealBytes(-1), engine.WithoutPause())
			kit.Fill(t, c.Active(), 5)
			kit.Check(t, c.Seal(ctx))
			kit.Fill(t, c.Active(), 3)
			want, dir, id := kit.Bodies(t, c.Active()), filepath.Dir(folder), c.Store.ID()
			kit.Check(t, c.Close())
			path := filepath.Join(dir, engine.StoreFile)
			damage(t, path)

			for _, err := range []error{second(kit.Open(dir)), second(kit.Init(dir))} {
				if !errors.Is(err, engine.ErrStoreFile) || errors.Is(err, engine.ErrNoStore) {
					t.Errorf("%v", err)
				}
			}
			read := kit.Must[*engine.Store](t)(kit.Open(dir, engine.ReadOnly(), engine.WithoutPause()))
			if read.ID() != id || !errors.Is(read.Problem(), engine.ErrStoreFile) {
				t.Errorf("id %s, wanted %s; %v", read.ID(), id, read.Problem())
			}
			p := &kit.Patient{T: t, Store: read}
			repairable := func(f integrity.Finding) bool { return f.Kind == integrity.KindStore && f.Repairable }
			if found := p.Check(true); !slices.ContainsFunc(found, repairable) {
				t.Errorf("found %+v", found)
			}
			before := kit.Tree(t, dir)
			done := p.Repair(checking.Options{DryRun: true})
			if len(done) == 0 || done[0].Kind != integrity.KindStore || kit.Tree(t, dir) != before {
				t.Errorf("planned %+v", done)
			}
			kit.Check(t, read.Close())

			if done, err := engine.RepairStore(dir); err != nil || done == "" {
				t.Fatal(done, err)
			}
			if done, err := engine.RepairStore(dir); err != nil || done != "" {
				t.Error("again:", done, err)
			}
			p.Store = kit.Must[*engine.Store](t)(kit.Open(dir, engine.WithTextThreshold(100), engine.WithoutPause()))
			if p.Store.ID() != id || p.Store.Problem() != nil {
				t.Errorf("id %s, wanted %s; %v", p.Store.ID(), id, p.Store.Problem())
			}
			p.Repair(checking.Options{})
			if found := p.Check(true); len(found) > 0 {
				t.Errorf("after the repair: %+v", found)
			}
			again := kit.Must[*engine.Context](t)(p.Store.Context(ctx, c.ID()))
			if got := kit.Bodies(t, again.Active()); !slices.Equal(got, want) {
				t.Errorf("%q, wanted %q", got, want)
			}
			kit.Append(t, again.Active(), engine.Draft{Body: []byte(`{"after":1}`)})
			kit.Check(t, again.Close(), p.Store.Close())
		})
	}
}

func second[T any](_ T, err error) error { return err }

// TestStoreFileOfNewer: a damaged ctxdir.json of a newer program, or of a store with a context of one, is left alone.
func TestStoreFileOfNewer(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"version":    func(b []byte) []byte { return bytes.Replace(b, []byte("store/1"), []byte("store/2"), 1)[:60] },
		"version 10": func(b []byte) []byte { return bytes.Replace(b, []byte("store/1"), []byte("store/10"), 1)[:60] },
		"feature": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"incompatible": [`), []byte(`"incompatible": ["x", `), 1)
		},
		"read-only": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"read_only_compatible": [`), []byte(`"read_only_compatible": ["x", `), 1)
		},
		"a newer context": func([]byte) []byte { return nil },
		"a newer log":     func([]byte) []byte { return nil },
		"nothing is wrong": func(b []byte) []byte {
			return append([]byte("\ufeff"), bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			c, folder := kit.NewContext(t)
			kit.Fill(t, c.Active(), 2)
			kit.Check(t, c.Close())
			path := filepath.Join(filepath.Dir(folder), engine.StoreFile)
			switch name {
			case "a newer context":
				m := filepath.Join(folder, "metadata.json")
				kit.Write(t, m, bytes.Replace(kit.Must[[]byte](t)(os.ReadFile(m)), []byte("context/1"), []byte("context/9"), 1))
			case "a newer log":
				log := kit.Must[[]string](t)(filepath.Glob(filepath.Join(folder, "log-*.jsonl")))[0]
				kit.Write(t, log, newerRecord(kit.Must[[]byte](t)(os.ReadFile(log)), `"ctxdir":"log/`))
			}
			kit.Write(t, path, damage(kit.Must[[]byte](t)(os.ReadFile(path))))
			was := kit.Must[[]byte](t)(os.ReadFile(path))
			done, err := engine.RepairStore(filepath.Dir(folder))
			if name == "nothing is wrong" {
				s := kit.Must[*engine.Store](t)(kit.Open(filepath.Dir(folder)))
				_ = kit.Must[*engine.Context](t)(s.Context(ctx, c.ID())).Close()
				if kit.Check(t, err, s.Problem(), s.Close()); done != "" {
					t.Error("it was written again")
				}
			} else if !errors.Is(err, engine.ErrFormat) || done != "" {
				t.Errorf("%v, %v", done, err)
			}
			if now := kit.Must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(was, now) {
				t.Errorf("%s, was %s", now, was)
			}
		})
	}
}

// TestStoreFileID: of several ids that contexts tell the one that most tell counts; without contexts a damaged file is
// enough of a store, and a folder with contexts of nobody's none.
func TestStoreFileID(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	other, otherDir := kit.NewStore(t)
	for range 2 {
		kit.Check(t, kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{})).Close())
	}
	alien := kit.Must[*engine.Context](t)(other.Create(ctx, engine.Metadata{}))
	kit.Check(t, alien.Close())
	kit.Check(t, os.CopyFS(filepath.Join(dir, alien.ID().String()), os.DirFS(filepath.Join(otherDir, alien.ID().String()))))
	kit.Check(t, os.Remove(filepath.Join(dir, engine.StoreFile)))
	if done, err := engine.RepairStore(dir); err != nil || done == "" {
		t.Fatal(done, err)
	}
	if now := kit.Must[*engine.Store](t)(kit.Open(dir)); now.ID() != s.ID() {
		t.Errorf("id %s, wanted %s", now.ID(), s.ID())
	}

	empty := t.TempDir()
	kit.Check(t, os.MkdirAll(filepath.Join(empty, uuid.NewString(), "messages_pool"), 0o700))
	if _, err := engine.RepairStore(empty); !errors.Is(err, engine.ErrNoStore) {
		t.Error(err)
	}
	kit.Write(t, filepath.Join(empty, engine.StoreFile), nil)
	if done, err := engine.RepairStore(empty); err != nil || done == "" {
		t.Error(done, err)
	}
	var info engine.StoreInfo
	raw := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(empty, engine.StoreFile)))
	if err := json.Unmarshal(raw, &info); err != nil || info.ID == uuid.Nil || info.Version != "store/1" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := engine.RepairStore(dir, engine.ReadOnly()); !errors.Is(err, engine.ErrReadOnly) {
		t.Error(err)
	}
}

// TestStoreFileCut cuts the power at each operation of writing ctxdir.json again: the next one ends it, with the same
// id.
func TestStoreFileCut(t *testing.T) {
	ctx := context.Background()
	for _, damage := range []func(disk *crashfs.FS) error{
		func(disk *crashfs.FS) error { return disk.Remove(engine.StoreFile) },
		func(disk *crashfs.FS) error { return disk.Replace(engine.StoreFile, nil) },
	} {
		for k := 1; ; k++ {
			disk := crashfs.New()
			s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
			kit.Check(t, kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{})).Close())
			kit.Check(t, damage(disk), disk.SyncAll())
			disk.CutAt(len(disk.Ops()) + k)
			done, err := engine.RepairStore("disk", engine.WithFS(disk))
			cut := disk.PowerCut()
			if (err != nil || done == "") && !cut {
				t.Fatal(done, err)
			}
			for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
				left := disk.Crash(choice)
				if _, err := engine.RepairStore("disk", engine.WithFS(left)); err != nil {
					t.Fatalf("cut at %d: %v", k, err)
				}
				again, err := kit.Open("disk", engine.WithFS(left))
				if err != nil || again.ID() != s.ID() {
					t.Fatalf("cut at %d: %v", k, err)
				}
				kit.Check(t, again.Close())
			}
			if !cut {
				break
			}
		}
	}
}
