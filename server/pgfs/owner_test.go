package pgfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/internal/schema"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// refuses fails unless every kind of call fails with an error.
func refuses(t *testing.T, f *FS, open vfs.File, want error) {
	t.Helper()
	_, lstat := f.Lstat(".")
	_, create := f.OpenFile("new", os.O_RDWR|os.O_CREATE)
	_, lock := f.Lock("lock").TryAcquire()
	_, read := open.ReadAt(make([]byte, 1), 0)
	for what, err := range map[string]error{
		"lstat": lstat, "create": create, "lock": lock, "read": read, "mkdir": f.Mkdir("x"), "rename": f.Rename("file", "y"),
		"remove": f.Remove("file"), "syncdir": f.SyncDir("."), "syncall": f.SyncAll(), "sync": open.Sync(), "datasync": open.Datasync(),
	} {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if !vfs.IsFault(err) {
			t.Errorf("%s: %v does not count as a fault", what, err)
		}
	}
}

func TestTakenOver(t *testing.T) {
	d := newDisk(t)
	first := d.open()
	h, err := first.OpenFile("file", os.O_RDWR|os.O_CREATE)
	check(t, err)
	_, err = h.Write([]byte("one"))
	check(t, err)
	check(t, h.Sync())
	second := d.open()
	_, err = h.Write([]byte("two"))
	check(t, err) // in memory
	if err := h.Sync(); !errors.Is(err, ErrTaken) {
		t.Fatalf("a write after the take-over: %v", err)
	}
	refuses(t, first, h, ErrTaken)
	b, err := vfs.ReadFile(second, "file", 100)
	if check(t, err); string(b) != "one" {
		t.Fatalf("the second owner reads %q", b)
	}
	check(t, second.Mkdir("mine"))
	check(t, second.Close())
}

// TestReadAfterTakeOver lets an owner that has lost the user read what the next one has changed: that is no damage.
func TestReadAfterTakeOver(t *testing.T) {
	d := newDisk(t)
	write := func(f *FS, size int64) {
		t.Helper()
		for _, name := range []string{"new", "known"} {
			h, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE)
			check(t, err)
			check(t, h.Truncate(0))
			_, err = h.WriteAt(bytes.Repeat([]byte(name), int(size)), 0)
			check(t, err)
			check(t, h.Sync())
			check(t, h.Close())
		}
	}
	first := d.open()
	write(first, 20_000)
	check(t, first.Close())
	lost := d.open()
	_, err := lost.Lstat("new") // its size, and no more
	check(t, err)
	known, err := lost.OpenFile("known", os.O_RDONLY)
	check(t, err)
	_, err = known.ReadAt(make([]byte, 1), 0) // where its extents are
	check(t, err)
	write(d.open(), 40_000)
	fresh, err := lost.OpenFile("new", os.O_RDONLY)
	check(t, err)
	if _, err := fresh.ReadAt(make([]byte, 1), 0); !errors.Is(err, ErrTaken) {
		t.Errorf("a file that was not read before: %v", err)
	}
	if _, err := known.ReadAt(make([]byte, 1), 70_000); !errors.Is(err, ErrTaken) {
		t.Errorf("a file that was: %v", err)
	}
	if len(d.damages) > 0 {
		t.Errorf("damage: %v", d.damages)
	}
}

// TestTakeOverAmidWrites takes a user over while the first owner writes: whatever was acknowledged is there, and nothing comes
// later.
func TestTakeOverAmidWrites(t *testing.T) {
	d := newDisk(t)
	f := d.open()
	for round := range 30 {
		h, err := f.OpenFile("file", os.O_RDWR|os.O_CREATE)
		check(t, err)
		var acked uint64
		var writer sync.WaitGroup
		started := make(chan struct{})
		writer.Go(func() {
			for n := uint64(1); ; n++ {
				if _, err := h.WriteAt(binary.BigEndian.AppendUint64(nil, n), 0); err != nil {
					t.Error(err)
				}
				if err := h.Datasync(); err != nil {
					if !errors.Is(err, ErrTaken) {
						t.Error(err)
					}
					return
				}
				if acked = n; n == 3 {
					close(started)
				}
			}
		})
		<-started
		next := d.open()
		b, err := vfs.ReadFile(next, "file", 8)
		check(t, err)
		writer.Wait()
		if got := binary.BigEndian.Uint64(b); got != acked {
			t.Fatalf("round %d: acknowledged %d, the new owner found %d", round, acked, got)
		}
		f = next
	}
}

// TestLost cuts the power of the database before it has written an asynchronous commit.
func TestLost(t *testing.T) {
	if errors.Is(missing, pgtest.ErrNone) {
		t.Skip(missing)
	}
	s, err := pgtest.Start("", "wal_writer_delay = 10s", "autovacuum = off")
	check(t, err)
	defer s.Stop()
	pool, name, err := s.Database(t.Context(), 4)
	check(t, err)
	check(t, schema.Migrate(t.Context(), pool))
	user := uuid.New()
	f, err := Open(t.Context(), pool, user, Options{})
	check(t, err)
	h, err := f.OpenFile("file", os.O_RDWR|os.O_CREATE)
	check(t, err)
	check(t, f.SyncDir("."))
	check(t, f.Mkdir("unsynced"))
	check(t, s.Kill())
	check(t, s.Run())
	pool.Reset()
	err = f.Mkdir("later")
	again, oerr := pgxpool.New(t.Context(), s.URL(name))
	check(t, oerr)
	defer again.Close()
	g, oerr := Open(t.Context(), again, user, Options{})
	check(t, oerr)
	_, found := g.Lstat("unsynced")
	t.Logf("after the power cut: %v; the later write: %v", found, err)
	if errors.Is(found, fs.ErrNotExist) {
		if !errors.Is(err, ErrLost) {
			t.Fatalf("the database lost a folder, and the next write said %v", err)
		}
		refuses(t, f, h, ErrLost)
	}
	if _, err := g.Lstat("file"); err != nil {
		t.Fatal(err)
	}
}

func TestWrongMasterKey(t *testing.T) {
	d := newDisk(t)
	f := d.open()
	check(t, f.Mkdir("a"))
	check(t, f.Close())
	rows := func() (n int64) {
		for _, table := range []string{"owners", "keys", "entries", "nodes", "extents"} {
			var one int64
			check(t, d.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&one))
			n += one
		}
		return n
	}
	var fence, now int64
	check(t, d.pool.QueryRow(t.Context(), "SELECT fence FROM owners").Scan(&fence))
	before := rows()
	for _, user := range []uuid.UUID{d.user, uuid.New()} {
		if _, err := Open(t.Context(), d.pool, user, Options{Keys: NewKeys(master(t))}); !errors.Is(err, ErrKey) {
			t.Fatalf("another master key: %v", err)
		}
	}
	if _, err := Open(t.Context(), d.pool, d.user, Options{}); !errors.Is(err, ErrKey) {
		t.Fatalf("no master key: %v", err)
	}
	check(t, d.pool.QueryRow(t.Context(), "SELECT fence FROM owners").Scan(&now))
	if rows() != before || now != fence {
		t.Fatalf("something was written: %d rows instead of %d, fence %d instead of %d", rows(), before, now, fence)
	}
}
