package crashfs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestModes(t *testing.T) {
	f := New()
	write(t, f, "a", "old")
	write(t, f, "gone", "x")
	check(t, f.SyncAll())
	appendTo(t, f, "a", "new")
	check(t, open(t, f, "gone").Truncate(0))
	appendTo(t, f, "gone", "yz")
	check(t, f.Rename("gone", "b"))
	write(t, f, "c", "new")
	check(t, f.Mkdir("d"))
	all, zero := "", ""
	for i := range 30 { // too many to be kept by chance
		write(t, f, fmt.Sprintf("d/%02d", i), "x")
		all += fmt.Sprintf(" d/%02d=x", i)
		zero += fmt.Sprintf(" d/%02d=.", i)
	}
	got := map[string]string{}
	for _, c := range []Choice{{}, Lose, Keep, ZeroFill} {
		got[c.String()] = state(t, f.Crash(c))
	}
	want := map[string]string{"lose": "a=old gone=x", "keep": "a=oldnew b=yz c=new" + all, "zerofill": "a=old... b=.. c=..." + zero}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestTwoNames: a crash may leave a moved file under both names. They are one file; a rename from one to
// the other does nothing, as POSIX has it.
func TestTwoNames(t *testing.T) {
	f := New()
	check(t, f.Mkdir("d"))
	write(t, f, "f", "x")
	check(t, f.SyncAll())
	check(t, f.Rename("f", "d/f"))
	check(t, f.SyncDir("d"))
	f = f.Crash(Lose)
	info, err := f.Lstat("f")
	check(t, err)
	if n := info.Sys().(Identity).Links(); n != 2 {
		t.Errorf("%d links", n)
	}
	check(t, f.Rename("f", "d/f"))
	write(t, f, "f", "y")
	if s := state(t, f); s != "d/f=y f=y" {
		t.Errorf("got %q", s)
	}
	check(t, f.Remove("f"))
	if s := state(t, f); s != "d/f=y" {
		t.Errorf("got %q", s)
	}
}

// TestPageBorder: write-back of a long append stops at a page, and new blocks do not wait for old ones.
func TestPageBorder(t *testing.T) {
	f := New()
	write(t, f, "f", strings.Repeat("a", 10))
	check(t, f.SyncAll())
	appendTo(t, f, "f", strings.Repeat("b", 9000))
	sizes := map[int64]bool{}
	for seed := range uint64(seeds) {
		info, err := f.Crash(Random(seed)).Lstat("f")
		check(t, err)
		sizes[info.Size()] = true
	}
	if d := cmp.Diff(map[int64]bool{10: true, 4096: true, 8192: true, 9010: true}, sizes); d != "" {
		t.Errorf("sizes: -want +got\n%s", d)
	}
	got := strings.Join(outcomes(t, f), "\n")
	for _, want := range []string{"f=a*10b*4086\n", "f=a*10.*4086\n", "f=a*10.*9000\n", "f=a*10b*9000"} {
		if !strings.Contains(got+"\n", want) {
			t.Errorf("never %s", want)
		}
	}
}

// TestTruncatedAndWrittenAnew: what was written after the truncation does not wait for what it cut away.
func TestTruncatedAndWrittenAnew(t *testing.T) {
	f := New()
	write(t, f, "f", "")
	check(t, f.SyncAll())
	appendTo(t, f, "f", "aaa")
	check(t, open(t, f, "f").Truncate(0))
	appendTo(t, f, "f", "b")
	want := []string{"f=", "f=.", "f=...", "f=aaa", "f=b"}
	if d := cmp.Diff(want, outcomes(t, f)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestClock(t *testing.T) {
	f := New()
	write(t, f, "f", "")
	first := modTime(t, f)
	write(t, f, "f", "x")
	if second := modTime(t, f); !second.After(first) || second.Nanosecond()%1000 == 0 {
		t.Errorf("%v after %v", second, first)
	}
	f.SetClock(func() time.Time { return time.Unix(7, 9) })
	write(t, f, "f", "x")
	if got := modTime(t, f); !got.Equal(time.Unix(7, 9)) {
		t.Errorf("with a clock: %v", got)
	}
}

// TestFolderTime: SyncDir makes it durable.
func TestFolderTime(t *testing.T) {
	f := New()
	write(t, f, "f", "")
	check(t, f.SyncDir("."))
	before, err := f.Lstat(".")
	check(t, err)
	after, err := f.Crash(Lose).Lstat(".")
	check(t, err)
	if !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("%v, want %v", after.ModTime(), before.ModTime())
	}
}

// TestModTimeAfterCrash: only Sync makes it durable.
func TestModTimeAfterCrash(t *testing.T) {
	f := New()
	writeSynced(t, f, "f", "a")
	check(t, f.SyncDir("."))
	h := open(t, f, "f")
	old := modTime(t, f)
	check(t, h.SetModTime(time.Unix(5, 7)))
	check(t, h.Datasync())
	if got := modTime(t, f.Crash(Lose)); !got.Equal(old) {
		t.Errorf("after Datasync and a crash: %v, want %v", got, old)
	}
	if got := modTime(t, f.Crash(Keep)); !got.Equal(time.Unix(5, 7)) {
		t.Errorf("kept: %v", got)
	}
	check(t, h.Sync())
	if got := modTime(t, f.Crash(Lose)); !got.Equal(time.Unix(5, 7)) {
		t.Errorf("after Sync and a crash: %v", got)
	}
}

func modTime(t *testing.T, f *FS) time.Time {
	t.Helper()
	info, err := f.Lstat("f")
	check(t, err)
	return info.ModTime()
}
