package vfs_test

import (
	"testing"
	"testing/fstest"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
)

func TestIO(t *testing.T) {
	disk := crashfs.New()
	if err := disk.Mkdir("folder"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "folder/b"} {
		if err := vfs.WriteNew(disk, name, []byte("text of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := fstest.TestFS(vfs.IO(disk), "a", "folder", "folder/b"); err != nil {
		t.Error(err)
	}
}
