package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// mounted mounts a file system in memory of so many bytes, or skips the test.
func mounted(t *testing.T, size int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("ctxdir-test", dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { kit.Check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// acknowledged is what a branch must show, in order.
type acknowledged struct {
	ids    []uuid.UUID
	bodies []string
}

// append appends until one fails, and returns why.
func (a *acknowledged) append(b *engine.Branch, size, most int) error {
	for range most {
		body := fmt.Sprintf(`{"n":%d,"text":%q}`, len(a.ids), bytes.Repeat([]byte{'x'}, size))
		at, err := b.Append(context.Background(), engine.Draft{Body: []byte(body)})
		if err != nil {
			return err
		}
		if at.Position != int64(len(a.ids)) {
			return fmt.Errorf("position %d, wanted %d", at.Position, len(a.ids))
		}
		a.ids, a.bodies = append(a.ids, at.ID), append(a.bodies, body)
	}
	return nil
}

// shown compares what a branch shows.
func (a *acknowledged) shown(t *testing.T, s *engine.Store, id uuid.UUID) {
	t.Helper()
	ctx := context.Background()
	c := kit.Must[*engine.Context](t)(s.Context(ctx, id))
	defer c.Close()
	n := 0
	for m, err := range c.Active().Messages(ctx) {
		if err != nil || m.Unavailable != nil || n >= len(a.ids) || m.ID != a.ids[n] {
			t.Fatalf("position %d: %v, %+v", n, err, m)
		}
		if body := kit.Must[[]byte](t)(bodyBytes(m)); string(body) != a.bodies[n] {
			t.Fatalf("position %d has another body", n)
		}
		n++
	}
	if n != len(a.ids) {
		t.Fatalf("%d messages, %d were acknowledged", n, len(a.ids))
	}
	for f, err := range checking.Check(ctx, s, []uuid.UUID{id}, checking.Options{ReadData: true}) {
		if err != nil || f.Severity == integrity.SeverityError {
			t.Errorf("check: %+v, %v", f, err)
		}
	}
}

func bodyBytes(m *engine.Message) ([]byte, error) { return m.Body(context.Background()) }

// TestFullDisk fills a file system, with small messages and with large ones: what was acknowledged is there, reading
// works, and with room again the same handle goes on.
func TestFullDisk(t *testing.T) {
	for _, size := range []int{200, 3000, 40_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			ctx := context.Background()
			dir := mounted(t, 22<<20)
			ballast := filepath.Join(dir, "ballast")
			kit.Check(t, os.WriteFile(ballast, make([]byte, 18<<20), 0o600))
			s := kit.Must[*engine.Store](t)(kit.Init(filepath.Join(dir, "store"), engine.WithSealBytes(200_000), engine.WithTextThreshold(16<<10)))
			defer s.Close()
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			defer c.Close()
			var a acknowledged
			if err := a.append(c.Active(), size, 100_000); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%d messages, then %v", len(a.ids), err)
			}
			for range 3 { // full is full, and no harm
				if err := a.append(c.Active(), size, 100_000); !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
			}
			_, ferr := c.NewBranch(ctx, "alt")
			uerr := c.Update(ctx, func(m *engine.Metadata) error { m.Title = "T"; return nil })
			_, aerr := kit.Archive(ctx, c, archiving.Options{})
			for _, err := range []error{ferr, uerr, aerr} {
				if err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("on a full disk: %v", err)
				}
			}
			a.shown(t, s, c.ID())
			n := len(a.ids)
			kit.Check(t, os.Remove(ballast), a.append(c.Active(), size, 5), c.Seal(ctx))
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
			kit.Check(t, a.append(c.Active(), size, 5))
			if len(a.ids) != n+10 {
				t.Errorf("%d messages, then %d", n, len(a.ids))
			}
			a.shown(t, s, c.ID())
		})
	}
}

// TestTooManyOpenFiles: where no more files can be opened, everything says so, and works again when they can.
func TestTooManyOpenFiles(t *testing.T) {
	if os.Getenv("CTXDIR_FEW_FILES") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTooManyOpenFiles$") // the limit is the whole process's
		cmd.Env = append(os.Environ(), "CTXDIR_FEW_FILES=1", "TMPDIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	ctx := context.Background()
	s, _ := kit.NewStore(t, engine.WithSealBytes(20_000), engine.WithTextThreshold(1<<10))
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	defer c.Close()
	var a acknowledged
	kit.Check(t, a.append(c.Active(), 3000, 20))
	var was syscall.Rlimit
	kit.Check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	refused := 0
	for more := range 24 {
		few := was
		few.Cur = uint64(kit.Descriptors(t) + more)
		kit.Check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
		var errs []error
		errs = append(errs, a.append(c.Active(), 3000, 5))
		_, err := c.Active().Last(ctx, 10)
		errs = append(errs, err, c.Update(ctx, func(m *engine.Metadata) error { m.Title = fmt.Sprint(more); return nil }))
		opened, err := s.Context(ctx, c.ID())
		if errs = append(errs, err); err == nil {
			errs = append(errs, opened.Close())
		}
		_, err = kit.Archive(ctx, c, archiving.Options{})
		errs = append(errs, err)
		kit.Check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was))
		for i, err := range errs {
			if err == nil {
				continue
			}
			if refused++; !errors.Is(err, syscall.EMFILE) {
				t.Errorf("%d files more, call %d: %v", more, i, err)
			}
		}
		kit.Check(t, a.append(c.Active(), 3000, 1))
		a.shown(t, s, c.ID())
	}
	if refused == 0 {
		t.Error("there were always enough")
	}
}

// TestReadOnlyFileSystem: contexts on a file system that is for reading only can be listed, read and copied, whatever
// state they are in, and nothing can be written.
func TestReadOnlyFileSystem(t *testing.T) {
	ctx := context.Background()
	dir := mounted(t, 16<<20)
	s := kit.Must[*engine.Store](t)(kit.Init(dir, engine.WithTextThreshold(1<<10)))
	var all []*acknowledged
	var ids []uuid.UUID
	for i := range 3 {
		c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{Title: fmt.Sprint(i)}))
		a := &acknowledged{}
		kit.Check(t, a.append(c.Active(), 3000, 10))
		switch i {
		case 1:
			kit.Check(t, c.Seal(ctx))
		case 2:
			kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{}))
		}
		all, ids = append(all, a), append(ids, c.ID())
		kit.Check(t, c.Close())
	}
	kit.Check(t, s.Close())
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("it cannot be made one for reading only: %v", err)
	}
	for _, opts := range [][]engine.Option{{engine.ReadOnly()}, nil} {
		s, err := kit.Open(dir, opts...)
		kit.Check(t, err)
		n := 0
		for sum, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
			if n++; err != nil || sum.Problem != nil || sum.Messages != 10 {
				t.Errorf("%+v, %v", sum, err)
			}
		}
		if n != 3 {
			t.Errorf("%d contexts listed", n)
		}
		for i, a := range all {
			a.shown(t, s, ids[i])
			c := kit.Must[*engine.Context](t)(s.Context(ctx, ids[i]))
			_, err := c.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)})
			if !errors.Is(err, syscall.EROFS) && !errors.Is(err, engine.ErrReadOnly) && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("append: %v", err)
			}
			files := 0
			for _, err := range c.Files(ctx) {
				kit.Check(t, err)
				files++
			}
			to, _ := kit.NewStore(t)
			kit.Must[backup.Result](t)(backup.Copy(ctx, s, ids[i], to))
			if a.shown(t, to, ids[i]); files == 0 {
				t.Error("no files listed")
			}
			kit.Check(t, c.Close())
		}
		kit.Check(t, s.Close())
	}
}
