//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenExisting: a file of the folder opens as one below it does. No link opens, no folder opens to be written, and
// nothing blocks.
func TestOpenExisting(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600),
		os.WriteFile(filepath.Join(dir, "unreadable"), nil, 0o200),
		os.Mkdir(filepath.Join(dir, "folder"), 0o700),
		os.Symlink("file", filepath.Join(dir, "link")),
		os.Symlink("none", filepath.Join(dir, "dangling")),
		os.Symlink("/etc/hostname", filepath.Join(dir, "escape")),
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
	o := fsys.(*osFS)
	for _, name := range []string{"file", "unreadable", "folder", "link", "dangling", "escape", "fifo", "none"} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
			f, err := o.openExisting(name, flag)
			g, want := o.openInRoot(name, flag, name == "link")
			same := true
			for _, kind := range []error{fs.ErrNotExist, fs.ErrPermission, ErrNotRegular, syscall.EISDIR} {
				same = same && errors.Is(err, kind) == errors.Is(want, kind)
			}
			if (err == nil) != (want == nil) || !same && flag != os.O_RDONLY {
				t.Errorf("%s, %d: %v, wanted %v", name, flag, err, want)
			}
			if err == nil {
				_ = f.Close()
			}
			if want == nil {
				_ = g.Close()
			}
		}
	}
}
