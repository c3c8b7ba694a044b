package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/test/disk"
	"github.com/ctxdir/ctxdir/test/powercut"
)

// TestMain lets the test program be a disk (see disk.Started), and mount where nobody else sees it.
func TestMain(m *testing.M) {
	if disk.Started() {
		return
	}
	os.Exit(powercut.InPrivate(m.Run))
}

// TestTurns: on btrfs, Datasync waits for whoever syncs the same file.
func TestTurns(t *testing.T) {
	if why := powercut.Missing("btrfs"); why != "" {
		t.Skip(why)
	}
	dir := t.TempDir()
	if err := disk.Make("btrfs", filepath.Join(dir, "image"), 1<<30); err != nil {
		t.Fatal(err)
	}
	at, mnt := filepath.Join(dir, "disk"), filepath.Join(dir, "mnt")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(mnt, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := disk.On(filepath.Join(dir, "image"), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Mount("btrfs", mnt); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := disk.Unmount(mnt); err != nil {
			t.Error(err)
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}()
	fsys, err := vfs.OS(mnt)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	f, err := fsys.OpenFile("file", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := os.Open(filepath.Join(mnt, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(other.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	synced := make(chan error, 1)
	go func() { synced <- f.Datasync() }()
	waits := regexp.MustCompile(fmt.Sprintf(`-> FLOCK .*:%d `, st.Ino))
	for {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		if waits.Match(locks) {
			break
		}
		select {
		case err := <-synced:
			t.Fatalf("Datasync did not wait: %v", err)
		default:
		}
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-synced; err != nil {
		t.Fatal(err)
	}
}
