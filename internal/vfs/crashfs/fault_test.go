package crashfs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

var errIO = errors.New("input/output error")

func failSync(t *testing.T, f *FS, name string) {
	t.Helper()
	h := open(t, f, name)
	f.FailAt(len(f.Ops())+1, errIO)
	if err := h.Sync(); !errors.Is(err, errIO) {
		t.Errorf("Sync gave %v", err)
	}
	f.Fail(nil)
}

func TestFaults(t *testing.T) {
	f := New()
	writeSynced(t, f, "f", "abc")
	h := open(t, f, "f")
	defer h.Close()
	f.Fail(func(o Op) error {
		switch o.Kind {
		case KindWrite:
			return &ShortWrite{N: 2, Err: errIO}
		case KindRead, KindReadDir, KindStat, KindRename, KindMkdir:
			return errIO
		case KindSyncAll:
			return errors.ErrUnsupported
		}
		return nil
	})
	n, err := h.WriteAt([]byte("xyz"), 0)
	if n != 2 || !errors.Is(err, errIO) {
		t.Errorf("short write gave %d, %v", n, err)
	}
	if _, err := h.ReadAt(make([]byte, 1), 0); !errors.Is(err, errIO) {
		t.Errorf("read gave %v", err)
	}
	if _, err := f.Lstat("f"); !errors.Is(err, errIO) {
		t.Errorf("Lstat gave %v", err)
	}
	if err := f.Mkdir("d"); !errors.Is(err, errIO) {
		t.Errorf("Mkdir gave %v", err)
	}
	for _, err := range f.ReadDir(".") {
		if !errors.Is(err, errIO) {
			t.Errorf("ReadDir gave %v", err)
		}
	}
	if err := f.Replace("f", []byte("new")); !errors.Is(err, errIO) {
		t.Errorf("Replace gave %v", err)
	}
	if err := f.SyncAll(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SyncAll gave %v", err)
	}
	f.Fail(nil)
	// A failed Replace leaves no temporary file, and an unsupported SyncAll no lost data.
	if s := state(t, f); s != "f=xyc" {
		t.Errorf("left %q", s)
	}
	check(t, f.SyncAll())
	if s := state(t, f.Crash(Lose)); s != "f=xyc" {
		t.Errorf("durable: %q", s)
	}
}

// TestSyncCoversWhatCameBefore: a write during a sync is not covered by it.
func TestSyncCoversWhatCameBefore(t *testing.T) {
	f := New()
	writeSynced(t, f, "f", "a")
	check(t, f.SyncDir("."))
	h := open(t, f, "f")
	f.Fail(func(o Op) error {
		if o.Kind == KindSync || o.Kind == KindSyncDir {
			_, err := h.WriteAt([]byte("b"), 0)
			check(t, err)
			write(t, f, "during "+string(o.Kind), "")
		}
		return nil
	})
	check(t, h.Sync())
	check(t, f.SyncDir("."))
	if s := state(t, f.Crash(Lose)); s != "during sync= f=a" {
		t.Errorf("durable: %q", s)
	}
}

func TestDeterminism(t *testing.T) {
	a, b := New(), New()
	check(t, work(a))
	check(t, work(b))
	for _, f := range []*FS{a, b} {
		write(t, f, "x", strings.Repeat("x", 20000))
		check(t, f.Rename("d", "e"))
		write(t, f, "y", "1")
	}
	differ := map[string]bool{}
	for seed := range uint64(50) {
		x, y := a.Crash(Random(seed)), b.Clone().Crash(Random(seed))
		if sx, sy := state(t, x), state(t, y); sx != sy {
			t.Fatalf("seed %d: %q and %q", seed, sx, sy)
		}
		ix, errX := x.Lstat("x")
		iy, errY := y.Lstat("x")
		if (errX == nil) != (errY == nil) || errX == nil && !ix.ModTime().Equal(iy.ModTime()) {
			t.Fatalf("seed %d: times differ", seed)
		}
		differ[state(t, x)] = true
	}
	if len(differ) < 20 {
		t.Errorf("50 seeds gave %d states", len(differ))
	}
}

func TestClone(t *testing.T) {
	f := New()
	write(t, f, "f", "a")
	g := f.Clone()
	check(t, g.SyncAll())
	appendTo(t, g, "f", "b")
	check(t, g.SyncAll())
	check(t, g.Rename("f", "g"))
	if s := state(t, f); s != "f=a" {
		t.Errorf("the clone changed its origin: %q", s)
	}
	if d := cmp.Diff([]string{"", "f=", "f=.", "f=a"}, outcomes(t, f)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"f=ab", "g=ab"}, outcomes(t, g)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got, want := len(g.Ops()), len(f.Ops())+4; got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
}

func TestIdentity(t *testing.T) {
	f := New()
	write(t, f, "a", "")
	write(t, f, "b", "")
	a, err := f.Lstat("a")
	check(t, err)
	b, err := f.Lstat("b")
	check(t, err)
	if vfs.SameFile(a, b) {
		t.Error("two files are the same")
	}
	check(t, f.Rename("a", "b"))
	b, err = f.Crash(Keep).Lstat("b")
	check(t, err)
	if !vfs.SameFile(a, b) {
		t.Error("a file is another one after a rename and a crash")
	}
	after := f.Crash(Keep)
	for _, name := range []string{"n1", "n2", "n3"} {
		write(t, after, name, "")
		n, err := after.Lstat(name)
		check(t, err)
		if vfs.SameFile(n, a) || vfs.SameFile(n, b) {
			t.Error("a new file is an old one")
		}
	}
	other := New()
	write(t, other, "a", "")
	o, err := other.Lstat("a")
	check(t, err)
	if vfs.SameFile(a, o) || o.Sys().(Identity).Links() != 1 {
		t.Error("files of two instances are the same")
	}
	actual, err := os.Lstat(".")
	check(t, err)
	if vfs.SameFile(a, actual) || vfs.SameFile(actual, a) {
		t.Error("a real file is the same")
	}
}

func TestReadDirInfo(t *testing.T) {
	f := New()
	write(t, f, "a", "")
	for e, err := range f.ReadDir(".") {
		check(t, err)
		check(t, f.Remove("a"))
		if _, err := e.Info(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Info of a removed file: %v", err)
		}
	}
}

func TestDump(t *testing.T) {
	f := New()
	check(t, f.Mkdir("d"))
	write(t, f, "d/f", "abc")
	write(t, f, "g", "x")
	check(t, f.SyncAll())
	appendTo(t, f, "d/f", "d")
	check(t, f.Rename("g", "h"))
	if d := cmp.Diff("d/\n  f 4 ~3\nh 1 ?\ng gone ?\n", f.Dump()); d != "" {
		t.Error(d)
	}
}

// TestWriteKeepsNoBuffer: callers use their buffers again.
func TestWriteKeepsNoBuffer(t *testing.T) {
	f := New()
	write(t, f, "f", "")
	check(t, f.SyncAll())
	b := []byte("ab")
	h := open(t, f, "f")
	_, err := h.WriteAt(b, 0)
	check(t, err)
	copy(b, "xy")
	check(t, h.Sync())
	if s := state(t, f.Crash(Lose)); s != "f=ab" {
		t.Errorf("durable: %q", s)
	}
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	f := New()
	f.CutAt(900)
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			name := string(rune('a' + i))
			for range 40 {
				if err := f.Replace(name, []byte(name)); err != nil {
					return err
				}
				if err := f.SyncDir("."); err != nil {
					return err
				}
				f.Crash(Random(uint64(i)))
				for _, err := range f.ReadDir(".") {
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); !errors.Is(err, ErrPowerCut) {
		t.Errorf("got %v", err)
	}
	if n := len(f.Ops()); n != 900 {
		t.Errorf("%d operations", n)
	}
}
