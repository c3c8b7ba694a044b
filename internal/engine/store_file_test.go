package engine

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
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// TestStoreFile: a store whose ctxdir.json is damaged can be read, is told of, and is mended with its own id.
func TestStoreFile(t *testing.T) {
	ctx := context.Background()
	put := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { write(t, path, []byte(text)) }
	}
	for name, damage := range map[string]func(t *testing.T, path string){
		"missing":         func(t *testing.T, path string) { check(t, os.Remove(path)) },
		"empty":           put(""),
		"zeros":           put(strings.Repeat("\x00", 300)),
		"mark alone":      put("\ufeff"),
		"truncated":       func(t *testing.T, path string) { check(t, os.Truncate(path, 40)) },
		"no object":       put("[]"),
		"an empty object": put("{}"),
		"null":            put("null"),
		"another kind":    put(`{"ctxdir":"context/1","id":"0198c0de-0000-7000-8000-00000000abcd"}`),
		"without id":      put(`{"ctxdir":"store/1"}`),
		"too large":       func(t *testing.T, path string) { check(t, os.Truncate(path, 2<<20)) },
		"folder":          func(t *testing.T, path string) { check(t, os.Remove(path), os.Mkdir(path, 0o700)) },
		"leads elsewhere": func(t *testing.T, path string) { check(t, os.Rename(path, path+"x"), os.Symlink(path+"x", path)) },
		"no journal tells": func(t *testing.T, path string) {
			check(t, os.Remove(path))
			removeAll(t, filepath.Dir(path), "journal-*")
		},
		"no index tells": func(t *testing.T, path string) {
			check(t, os.Remove(path))
			removeAll(t, filepath.Dir(path), "index.json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, folder := newContext(t, WithTextThreshold(100), WithFoldBytes(-1), withoutPause())
			fill(t, c.Active(), 5)
			check(t, c.Fold(ctx))
			fill(t, c.Active(), 3)
			want, dir, id := bodies(t, c.Active()), filepath.Dir(folder), c.store.ID()
			check(t, c.Close())
			path := filepath.Join(dir, storeFile)
			damage(t, path)

			for _, err := range []error{second(Open(dir)), second(Init(dir))} {
				if !errors.Is(err, ErrStoreFile) || errors.Is(err, ErrNoStore) {
					t.Errorf("%v", err)
				}
			}
			read := must[*Store](t)(Open(dir, ReadOnly(), withoutPause()))
			if read.ID() != id || !errors.Is(read.Problem(), ErrStoreFile) {
				t.Errorf("id %s, wanted %s; %v", read.ID(), id, read.Problem())
			}
			p := &patient{t: t, store: read}
			if found := p.check(true); !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == integrity.KindStore && f.Repairable }) {
				t.Errorf("found %+v", found)
			}
			before := tree(t, dir)
			if done := p.repair(CheckOptions{DryRun: true}); len(done) == 0 || done[0].Kind != integrity.KindStore || tree(t, dir) != before {
				t.Errorf("planned %+v", done)
			}
			check(t, read.Close())

			if r, done, err := RepairStore(dir); err != nil || !done || r.Kind != integrity.KindStore {
				t.Fatalf("%+v, %v, %v", r, done, err)
			}
			if r, done, err := RepairStore(dir); err != nil || done {
				t.Errorf("again: %+v, %v, %v", r, done, err)
			}
			p.store = must[*Store](t)(Open(dir, WithTextThreshold(100), withoutPause()))
			if p.store.ID() != id || p.store.Problem() != nil {
				t.Errorf("id %s, wanted %s; %v", p.store.ID(), id, p.store.Problem())
			}
			p.repair(CheckOptions{})
			if found := p.check(true); len(found) > 0 {
				t.Errorf("after the repair: %+v", found)
			}
			again := must[*Context](t)(p.store.Context(ctx, c.ID()))
			if got := bodies(t, again.Active()); !slices.Equal(got, want) {
				t.Errorf("%q, wanted %q", got, want)
			}
			must[Appended](t)(again.Active().Append(ctx, Draft{Body: []byte(`{"after":1}`)}))
			check(t, again.Close(), p.store.Close())
		})
	}
}

func second[T any](_ T, err error) error { return err }

func removeAll(t *testing.T, dir, pattern string) {
	t.Helper()
	for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "*", pattern))) {
		check(t, os.Remove(path))
	}
}

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
		"a newer journal": func([]byte) []byte { return nil },
		"nothing is wrong": func(b []byte) []byte {
			return append([]byte("\ufeff"), bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			c, folder := newContext(t)
			fill(t, c.Active(), 2)
			check(t, c.Close())
			path := filepath.Join(filepath.Dir(folder), storeFile)
			switch name {
			case "a newer context":
				m := filepath.Join(folder, "metadata.json")
				write(t, m, bytes.Replace(must[[]byte](t)(os.ReadFile(m)), []byte("context/1"), []byte("context/2"), 1))
			case "a newer journal":
				j := filepath.Join(folder, "journal-1.jsonl")
				write(t, j, newerRecord(must[[]byte](t)(os.ReadFile(j)), `"ctxdir":"journal/`))
			}
			write(t, path, damage(must[[]byte](t)(os.ReadFile(path))))
			was := must[[]byte](t)(os.ReadFile(path))
			_, done, err := RepairStore(filepath.Dir(folder))
			if name == "nothing is wrong" {
				s := must[*Store](t)(Open(filepath.Dir(folder)))
				_ = must[*Context](t)(s.Context(ctx, c.ID())).Close()
				if check(t, err, s.Problem(), s.Close()); done {
					t.Error("it was written again")
				}
			} else if !errors.Is(err, ErrFormat) || done {
				t.Errorf("%v, %v", done, err)
			}
			if now := must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(was, now) {
				t.Errorf("%s, was %s", now, was)
			}
		})
	}
}

// TestStoreFileID: of several ids that contexts tell the one that most tell counts; without contexts a damaged file is
// enough of a store, and a folder with contexts of nobody's none.
func TestStoreFileID(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t)
	other, otherDir := newStore(t)
	for range 2 {
		check(t, must[*Context](t)(s.Create(ctx, Metadata{})).Close())
	}
	alien := must[*Context](t)(other.Create(ctx, Metadata{}))
	check(t, alien.Close())
	check(t, os.CopyFS(filepath.Join(dir, alien.ID().String()), os.DirFS(filepath.Join(otherDir, alien.ID().String()))))
	check(t, os.Remove(filepath.Join(dir, storeFile)))
	if _, done, err := RepairStore(dir); err != nil || !done {
		t.Fatal(done, err)
	}
	if now := must[*Store](t)(Open(dir)); now.ID() != s.ID() {
		t.Errorf("id %s, wanted %s", now.ID(), s.ID())
	}

	empty := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(empty, uuid.NewString(), "messages_pool"), 0o700))
	if _, _, err := RepairStore(empty); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
	write(t, filepath.Join(empty, storeFile), nil)
	if _, done, err := RepairStore(empty); err != nil || !done {
		t.Error(done, err)
	}
	var info storeInfo
	raw := must[[]byte](t)(os.ReadFile(filepath.Join(empty, storeFile)))
	if err := json.Unmarshal(raw, &info); err != nil || info.ID == uuid.Nil || info.Version != storeVersion {
		t.Errorf("%+v, %v", info, err)
	}
	if _, _, err := RepairStore(dir, ReadOnly()); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
}

// TestStoreFileCut cuts the power at each operation of writing ctxdir.json again: the next one ends it, with the same id.
func TestStoreFileCut(t *testing.T) {
	ctx := context.Background()
	for _, damage := range []func(disk *crashfs.FS) error{
		func(disk *crashfs.FS) error { return disk.Remove(storeFile) },
		func(disk *crashfs.FS) error { return disk.Replace(storeFile, nil) },
	} {
		for k := 1; ; k++ {
			disk := crashfs.New()
			s := must[*Store](t)(Init("disk", withFS(disk)))
			check(t, must[*Context](t)(s.Create(ctx, Metadata{})).Close())
			check(t, damage(disk), disk.SyncAll())
			disk.CutAt(len(disk.Ops()) + k)
			_, done, err := RepairStore("disk", withFS(disk))
			cut := disk.PowerCut()
			if (err != nil || !done) && !cut {
				t.Fatal(done, err)
			}
			for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(uint64(k))} {
				left := disk.Crash(choice)
				if _, _, err := RepairStore("disk", withFS(left)); err != nil {
					t.Fatalf("cut at %d: %v", k, err)
				}
				again, err := Open("disk", withFS(left))
				if err != nil || again.ID() != s.ID() {
					t.Fatalf("cut at %d: %v", k, err)
				}
				check(t, again.Close())
			}
			if !cut {
				break
			}
		}
	}
}
