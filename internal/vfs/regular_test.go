package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReadRegular: the file of a path is read whole, and no link to a file, nor anything else.
func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700),
		os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("content"), 0o600),
		os.WriteFile(filepath.Join(dir, "plain"), []byte("plain"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("file", filepath.Join(dir, "a", "b", "link")); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	fsys, err := OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for name, c := range map[string]struct {
		content string
		missing bool
	}{
		"a/b/file":      {content: "content"},
		"plain":         {content: "plain"},
		"a/b/link":      {},
		"a/b":           {},
		"a/b/none":      {missing: true},
		"a/none/file":   {missing: true},
		"../" + dir[1:]: {},
	} {
		for how, read := range map[string]func() ([]byte, error){
			"one call":     func() ([]byte, error) { return ReadRegular(fsys, name, 100) },
			"several ones": func() ([]byte, error) { return readRegular(fsys, name, 100) },
		} {
			b, err := read()
			if string(b) != c.content || (err == nil) != (c.content != "") || c.missing != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s in %s: %q, %v", name, how, b, err)
			}
		}
	}
	if _, err := ReadRegular(fsys, "a/b/file", 6); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
}
