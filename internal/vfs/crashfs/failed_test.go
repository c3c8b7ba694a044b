package crashfs

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// TestFailedWriteIsToldOnce: each descriptor that is open when a write fails is told of it once, and one that is opened
// later only if nobody was.
func TestFailedWriteIsToldOnce(t *testing.T) {
	f := New()
	writeSynced(t, f, "f", "old")
	check(t, f.SyncDir("."))
	before, also := open(t, f, "f"), open(t, f, "f")
	if _, err := before.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	check(t, f.FailWriteback("f"))
	unaware := open(t, f, "f") // nobody was told yet
	for name, h := range map[string]interface{ Sync() error }{"the writer": before, "another one": also, "one that came later": unaware} {
		if err := h.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s is told %v", name, err)
		}
	}
	late := open(t, f, "f")
	for name, h := range map[string]interface{ Sync() error }{"the writer": before, "another one": also, "one that came too late": late} {
		if err := h.Sync(); err != nil {
			t.Errorf("%s is told again: %v", name, err)
		}
	}
	if now, after := state(t, f), state(t, f.Crash(Lose)); now != "f=new" || after != "f=old" {
		t.Errorf("it reads %q, and after a power cut %q", now, after)
	}
	if _, err := late.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	check(t, late.Sync())
	if after := state(t, f.Crash(Lose)); after != "f=new" {
		t.Errorf("written again, after a power cut it reads %q", after)
	}
}

// TestFailedWriteAndSyncAll: so is each FS.
func TestFailedWriteAndSyncAll(t *testing.T) {
	f := New()
	writeSynced(t, f, "f", "old")
	check(t, f.SyncDir("."))
	sub, err := f.Sub(".")
	check(t, err)
	h := open(t, f, "f")
	if _, err := h.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	check(t, f.FailWriteback("f"))
	for _, fsys := range []interface {
		SyncAll() error
		SyncFailures() uint64
	}{f, sub} {
		if err := fsys.SyncAll(); !errors.Is(err, syscall.EIO) || fsys.SyncFailures() != 1 {
			t.Errorf("SyncAll gave %v, %d failed", err, fsys.SyncFailures())
		}
	}
	late, err := f.Sub(".")
	check(t, err)
	check(t, late.SyncAll())
	check(t, f.SyncAll())
	if after := state(t, f.Crash(Lose)); after != "f=old" {
		t.Errorf("after a power cut it reads %q", after)
	}
	check(t, f.Drop("f"))
	if now := state(t, f); now != "f=old" {
		t.Errorf("what could not be written is read: %q", now)
	}
}

// TestFailedWriteAtTheEnd: what a failed write was to add to a file does not become durable by writing it again, until the
// file is truncated before it, or the system restarts. What the file had does.
func TestFailedWriteAtTheEnd(t *testing.T) {
	f := New()
	writeSynced(t, f, "f", strings.Repeat("a", pageSize))
	check(t, f.SyncDir("."))
	appendTo(t, f, "f", "new")
	failSync(t, f, "f")
	again := func(f *FS) string {
		t.Helper()
		h := open(t, f, "f")
		defer h.Close()
		_, err := h.WriteAt([]byte(strings.Repeat("b", pageSize)+"new"), 0)
		check(t, err)
		check(t, h.Sync())
		return state(t, f.Crash(Lose))
	}
	restarted := f.Crash(Lose)
	for _, f := range []*FS{f, f.Clone()} {
		if got := again(f); got != "f=b*4096" {
			t.Errorf("written again, it is %q", got)
		}
	}
	if got := again(restarted); got != "f=b*4096new" {
		t.Errorf("written again after a restart, it is %q", got)
	}
	h := open(t, f, "f")
	check(t, h.Truncate(pageSize))
	check(t, h.Close())
	if got := again(f); got != "f=b*4096new" {
		t.Errorf("truncated and written again, it is %q", got)
	}
}
