package migrate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// migrated puts a file into a new folder and migrates it.
func migrated(t *testing.T, s *engine.Store, text string) (path string, done migrate.Result) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.json")
	kit.Check(t, os.WriteFile(path, []byte(text), 0o600))
	return path, kit.Must[migrate.Result](t)(migrate.Convert(context.Background(), s, path, migrate.Options{}))
}

// TestRestoreLegacyLocks: what is appended while the old file is put back either keeps it from being put back, or is
// refused.
func TestRestoreLegacyLocks(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t)
	_, done := migrated(t, s, legacytest.Whole(legacytest.ID(500)))
	opened := func(opts ...engine.Option) *engine.Context {
		other := kit.Must[*engine.Store](t)(kit.Open(dir, opts...))
		c := kit.Must[*engine.Context](t)(other.Context(ctx, done.Context))
		t.Cleanup(func() { kit.Check(t, c.Close(), other.Close()) })
		return c
	}
	hasty, patient := opened(engine.WithLockTimeout(time.Millisecond)), opened()
	tried := 0
	_, err := migrate.RestoreLegacy(ctx, s, done.Context, migrate.RollbackOptions{Progress: func(int64, int64) {
		tried++
		if _, err := hasty.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)}); !errors.Is(err, engine.ErrLocked) {
			t.Errorf("appended in the midst of it: %v", err)
		}
	}})
	if err != nil || tried == 0 {
		t.Errorf("%v, tried %d times", err, tried)
	}
	if _, err := patient.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)}); !errors.Is(err, engine.ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestMigrateBackup: what was migrated keeps its name, whoever asks for it.
func TestMigrateBackup(t *testing.T) {
	s, _ := kit.NewStore(t)
	path, done := migrated(t, s, legacytest.Whole(legacytest.ID(500)))
	again, _ := kit.NewStore(t)
	for _, to := range []*engine.Store{s, again} {
		if _, err := migrate.Convert(context.Background(), to, done.Backup, migrate.Options{}); !errors.Is(err, engine.ErrNotLegacy) {
			t.Errorf("%v", err)
		}
	}
	back, err := migrate.RestoreLegacy(context.Background(), s, done.Context, migrate.RollbackOptions{})
	if err != nil || back.Path != path {
		t.Errorf("%+v", back)
	}
}

// meddlingFS is a file system in which somebody else does something right before a file or folder gets another name.
type meddlingFS struct {
	vfs.FS
	meddle func(from, to string)
}

func (m meddlingFS) Sub(name string) (vfs.FS, error) {
	sub, err := m.FS.Sub(name)
	if name == "." {
		return meddlingFS{sub, m.meddle}, err
	}
	return sub, err
}

func (m meddlingFS) Rename(from, to string) error {
	m.meddle(from, to)
	return m.FS.Rename(from, to)
}

func (m meddlingFS) RenameNew(from, to string) error {
	m.meddle(from, to)
	return m.FS.RenameNew(from, to)
}

// TestMigrateWritten: what is written to a legacy context in the last moment is not lost: there is no context of the
// older state, and the legacy one has its name.
func TestMigrateWritten(t *testing.T) {
	ctx := context.Background()
	for _, split := range []bool{false, true} {
		for _, how := range []string{"written", "replaced"} {
			disk, id, text := legacyOnDisk(t, split)
			name, file := id.String()+".json", id.String()+".json"
			if split {
				name, file, text = id.String(), id.String()+"/messages_pool/"+legacytest.ID(1)+".json", `{"message":{"role":"User"}}`
			}
			changed, times := strings.Replace(text, "User", "Tool", 1), 0
			s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(meddlingFS{disk, func(from, _ string) {
				if from != name {
					return
				}
				if times++; times > 1 {
					return
				}
				if how == "replaced" {
					kit.Check(t, disk.Replace(file, []byte(changed)))
					return
				}
				f := kit.Must[vfs.File](t)(disk.OpenFile(file, os.O_WRONLY))
				_, err := f.Write([]byte(changed))
				kit.Check(t, err, f.Truncate(int64(len(changed))), f.Close())
			}}), engine.WithSealBytes(-1)))
			if c, err := s.Context(ctx, id); !errors.Is(err, legacy.ErrChanged) {
				t.Errorf("%s, split %v: %v, %v", how, split, c, err)
			}
			if b, err := vfs.ReadFile(disk, file, 1<<20); err != nil || string(b) != changed {
				t.Errorf("%s, split %v: %.40s, %v", how, split, b, err)
			}
			if format, err := s.Legacy(id); format == "" || err != nil {
				t.Errorf("%s, split %v: there is a context, or %v", how, split, err)
			}
			for e, err := range disk.ReadDir("staging") {
				t.Error("left in staging:", e, err)
			}
			kit.Must[*engine.Context](t)(s.Context(ctx, id)).Close()
		}
	}
}

// TestMigrateRace: who was slower to migrate a legacy context, or comes later, is told that it was migrated.
func TestMigrateRace(t *testing.T) {
	ctx := context.Background()
	for _, where := range []string{"a file", "a folder", "a file in the store", "a folder in the store"} {
		s, dir := kit.NewStore(t)
		path := filepath.Join(t.TempDir(), "x")
		id := legacytest.ID(500)
		if strings.Contains(where, "store") {
			path = filepath.Join(dir, id)
		}
		if strings.Contains(where, "file") {
			path += ".json"
			kit.Check(t, os.WriteFile(path, []byte(legacytest.Whole(id)), 0o600))
		} else {
			kit.Check(t, os.MkdirAll(filepath.Join(path, "messages_pool"), 0o700))
			kit.Check(t, os.WriteFile(filepath.Join(path, "context.json"), []byte(legacytest.Split(legacytest.Whole(id))), 0o600))
		}
		winner := kit.Must[*engine.Store](t)(kit.Open(dir))
		defer winner.Close()
		raced := false
		done, err := migrate.Convert(ctx, s, path, migrate.Options{Progress: func(int64, int64) {
			if !raced {
				raced = true
				if done := kit.Must[migrate.Result](t)(migrate.Convert(ctx, winner, path, migrate.Options{})); done.Again {
					t.Errorf("%s, at first: %+v", where, done)
				}
			}
		}})
		if err != nil || !raced || !done.Again || done.Backup != path+".old" || done.Context.String() != id {
			t.Errorf("%s, overtaken: %+v, %v", where, done, err)
		}
		if done, err := migrate.Convert(ctx, s, path, migrate.Options{}); err != nil || !done.Again || done.Backup != path+".old" {
			t.Errorf("%s, later: %+v, %v", where, done, err)
		}
		kit.Check(t, os.RemoveAll(path+".old"))
		if done, err := migrate.Convert(ctx, s, path, migrate.Options{}); err == nil {
			t.Errorf("%s, gone: %+v", where, done)
		}
	}
}

// TestRestoreCopied: the copy of a store puts back what is in the copy.
func TestRestoreCopied(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{legacytest.ID(500) + ".json", "kept/old.json"} {
		s, dir := kit.NewStore(t)
		path := filepath.Join(dir, name)
		kit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(legacytest.Whole(legacytest.ID(500))), 0o600))
		done := kit.Must[migrate.Result](t)(migrate.Convert(ctx, s, path, migrate.Options{}))
		copied := filepath.Join(t.TempDir(), "copy")
		kit.Check(t, os.CopyFS(copied, os.DirFS(dir)))
		in := kit.Must[*engine.Store](t)(kit.Open(copied))
		defer in.Close()
		back := kit.Must[migrate.RollbackResult](t)(migrate.RestoreLegacy(ctx, in, done.Context, migrate.RollbackOptions{}))
		if back.Path != filepath.Join(copied, name) {
			t.Errorf("%+v", back)
		}
		if _, err := os.Lstat(back.Path); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path + ".old"); err != nil {
			t.Error(err)
		}
	}
}

// TestSettle: while a split context gives way to the one that it became, who asks for it waits; and where that was
// stopped in the middle, does the rest.
func TestSettle(t *testing.T) {
	ctx := context.Background()
	disk, id, _ := legacyOnDisk(t, true)
	look := func(s *engine.Store, want error, when string) {
		c, err := s.Context(ctx, id)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", when, err)
		}
		if err == nil {
			c.Close()
		}
		rows := 0
		for sum, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
			if rows++; err != nil || sum.ID != id || !errors.Is(sum.Problem, want) {
				t.Errorf("%s, listed: %+v, %v", when, sum, err)
			}
		}
		if _, err := listing.New(s).Resolve(id.String()); want == nil && (err != nil || rows != 1) {
			t.Errorf("%s: %d rows, %v", when, rows, err)
		}
	}
	var stopped *crashfs.FS
	s := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(meddlingFS{disk, func(_, to string) {
		if to == id.String() && stopped == nil {
			stopped = disk.Crash(crashfs.Keep)
			other := kit.Must[*engine.Store](t)(kit.Open("disk", engine.WithFS(disk), engine.WithLockTimeout(time.Millisecond)))
			defer other.Close()
			look(other, engine.ErrLocked, "meanwhile")
		}
	}}), engine.WithSealBytes(-1)))
	look(s, nil, "at first")
	if stopped == nil {
		t.Fatal("it was never in between")
	}
	for _, ask := range []string{"context", "list", "resolve"} {
		disk := stopped.Crash(crashfs.Keep)
		kit.Check(t, disk.Rename("staging/"+id.String()+".ready", "staging/later"))
		s := kit.Must[*engine.Store](t)(kit.OpenCrash(disk))
		kit.Check(t, disk.Rename("staging/later", "staging/"+id.String()+".ready"))
		switch ask {
		case "list":
			for sum, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
				if err != nil || sum.Problem != nil {
					t.Errorf("%+v, %v", sum, err)
				}
			}
		case "resolve":
			kit.Must[uuid.UUID](t)(listing.New(s).Resolve(id.String()[20:]))
		}
		look(s, nil, ask)
	}
}
