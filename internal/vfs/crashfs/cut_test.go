package crashfs

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// work is a few operations of every kind.
func work(f vfs.FS) error {
	if err := f.Mkdir("d"); err != nil {
		return err
	}
	h, err := f.OpenFile("d/f", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer h.Close()
	steps := []func() error{
		func() error { _, err := h.Write([]byte("hello")); return err },
		func() error { return h.Truncate(4) },
		func() error { return h.SetModTime(time.Unix(1, 0)) },
		h.Datasync,
		h.Sync,
		func() error { return f.Replace("r", []byte("one")) },
		func() error { return f.Rename("r", "d/r") },
		func() error { return f.SyncDir(".") },
		func() error { return f.Remove("d/r") },
		f.SyncAll,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func TestOps(t *testing.T) {
	f := New()
	check(t, work(f))
	var got []string
	for _, o := range f.Ops() {
		got = append(got, o.String())
	}
	tmp := ".r16294208416658607535"
	want := []string{
		"1 mkdir d", "2 create d/f", "3 write d/f 0+5", "4 truncate d/f 4", "5 setmodtime d/f", "6 datasync d/f", "7 sync d/f",
		"8 create " + tmp, "9 write " + tmp + " 0+3", "10 sync " + tmp, "11 rename " + tmp + " -> r",
		"12 rename r -> d/r", "13 syncdir .", "14 remove d/r", "15 syncall .",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestCutEvery cuts the power at each operation in turn: it leaves at least what the operations before
// it left durable, and at most what it does itself.
func TestCutEvery(t *testing.T) {
	var lose, keep []string // before each operation
	whole := New()
	note := func() {
		lose, keep = append(lose, state(t, whole.Crash(Lose))), append(keep, state(t, whole.Crash(Keep)))
	}
	whole.Fail(func(o Op) error {
		if o.Index > 0 {
			note()
		}
		return nil
	})
	check(t, work(whole))
	note()
	k := 1
	for ; ; k++ {
		f := New()
		f.CutAt(k)
		err := work(f)
		if !f.PowerCut() {
			check(t, err)
			break
		}
		if !errors.Is(err, ErrPowerCut) {
			t.Fatalf("cut at %d: %v", k, err)
		}
		ops := f.Ops()
		if len(ops) != k || !errors.Is(ops[k-1].Err, ErrPowerCut) {
			t.Fatalf("cut at %d: log %v", k, ops)
		}
		if _, err := f.Lstat("."); !errors.Is(err, ErrPowerCut) {
			t.Fatalf("Lstat after the cut: %v", err)
		}
		if got := state(t, f.Crash(Lose)); got != lose[k-1] {
			t.Errorf("%v left at least %q, want %q", ops[k-1], got, lose[k-1])
		}
		if got := state(t, f.Crash(Keep)); got != keep[k] {
			t.Errorf("%v left at most %q, want %q", ops[k-1], got, keep[k])
		}
	}
	if k != 16 {
		t.Errorf("%d operations", k-1)
	}
}

// TestCutOperation: the operation cut may have taken place, except that a sync promises nothing.
func TestCutOperation(t *testing.T) {
	cut := func(step func(f *FS) error) []string {
		f := New()
		write(t, f, "f", "a")
		check(t, f.SyncAll())
		appendTo(t, f, "f", "b")
		f.CutAt(len(f.Ops()) + 1)
		if err := step(f); !errors.Is(err, ErrPowerCut) {
			t.Errorf("got %v", err)
		}
		return outcomes(t, f)
	}
	unsynced := []string{"f=a", "f=a.", "f=ab"}
	if d := cmp.Diff(unsynced, cut(func(f *FS) error { return f.SyncAll() })); d != "" {
		t.Errorf("syncall\n%s", d)
	}
	if d := cmp.Diff(unsynced, cut(func(f *FS) error { return open(t, f, "f").Datasync() })); d != "" {
		t.Errorf("datasync\n%s", d)
	}
	want := []string{"f=a", "f=a.", "f=ab", "g=a", "g=a.", "g=ab"}
	if d := cmp.Diff(want, cut(func(f *FS) error { return f.Rename("f", "g") })); d != "" {
		t.Errorf("rename\n%s", d)
	}
	want = []string{"f=a", "f=a.", "f=a..", "f=ab", "f=ab.", "f=abc"}
	if d := cmp.Diff(want, cut(func(f *FS) error { _, err := open(t, f, "f").WriteAt([]byte("c"), 2); return err })); d != "" {
		t.Errorf("write\n%s", d)
	}
}

// TestCutInHook: what comes after the operation cut fails though that one is still in its hook.
func TestCutInHook(t *testing.T) {
	f := New()
	f.CutAt(1)
	f.Fail(func(o Op) error {
		if o.Path == "a" {
			if err := f.Mkdir("b"); !errors.Is(err, ErrPowerCut) {
				t.Errorf("an operation after the one cut gave %v", err)
			}
		}
		return nil
	})
	if err := f.Mkdir("a"); !errors.Is(err, ErrPowerCut) {
		t.Errorf("got %v", err)
	}
}
