//go:build linux

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSub: a folder opens as one, nothing else opens or blocks, and an FS stays with its folder under another name. All
// this holds without /proc, too.
func TestSub(t *testing.T) {
	links := hasLinks
	if _, err := os.Stat("/proc/self/fd"); err == nil && !links() {
		t.Error("the links to open files lead nowhere")
	}
	defer func() { hasLinks = links }()
	for _, hasLinks = range []func() bool{links, func() bool { return false }} {
		testSub(t)
	}
}

func testSub(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.MkdirAll(filepath.Join(dir, "folder", "inner"), 0o700),
		os.MkdirAll(filepath.Join(dir, "other", "inner"), 0o700),
		os.Symlink("folder", filepath.Join(dir, "link")),
		os.Symlink("..", filepath.Join(dir, "folder", "up")),
		os.Symlink("../..", filepath.Join(dir, "folder", "out")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	fsys, err := OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for name, want := range map[string]error{
		"file": ErrNotFolder, "link": ErrNotFolder, "fifo": ErrNotFolder, "none": fs.ErrNotExist, "none/inner": fs.ErrNotExist,
		"folder/none": fs.ErrNotExist, "folder/up": ErrNotFolder, "file/inner": syscall.ENOTDIR, "link/inner": nil,
		"folder/up/other/inner": nil, "folder/inner": nil, ".": nil,
	} {
		sub, err := fsys.Sub(name)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, wanted %v", name, err, want)
		}
		if err == nil {
			_ = sub.Close()
		}
	}
	for _, name := range []string{"..", "folder/../..", "folder/out", "folder/out/etc", "/etc", ""} {
		if sub, err := fsys.Sub(name); err == nil {
			t.Errorf("%q opens", name)
			_ = sub.Close()
		}
	}
	sub, info, err := SubStat(fsys, "folder")
	if err != nil {
		t.Fatal(err)
	}
	if now, err := fsys.Lstat("folder"); err != nil || !info.IsDir() || !SameFile(now, info) {
		t.Errorf("Stat of the opened folder: %v, %v", info, err)
	}
	for _, err := range []error{fsys.Rename("folder", "moved"), fsys.Rename("other", "folder")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		WriteNew(sub, "a", nil), WriteNew(sub, "inner/b", nil), sub.Mkdir("c"), sub.Rename("a", "d"), sub.SyncDir("."),
		sub.SyncDir("inner"), sub.Close(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"c", "d", "inner/b"} {
		if _, err := fsys.Lstat("moved/" + name); err != nil {
			t.Error(err)
		}
	}
	if err := sub.Mkdir("e"); err == nil {
		t.Error("a closed FS made a folder")
	}
}
