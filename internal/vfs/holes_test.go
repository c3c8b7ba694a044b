package vfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestHoles: of a file of a terabyte that was hardly written only the written parts are read, and as text it is refused.
func TestHoles(t *testing.T) {
	dir := t.TempDir()
	fsys, err := OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	const size = 1 << 40
	f, err := os.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{1 << 30, size - 5} {
		if _, err := f.WriteAt([]byte("words"), at); err != nil {
			t.Skipf("no files of this size here: %v", err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	opened, err := fsys.OpenFile("a", os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if h, ok := opened.(hollow); !ok {
		t.Skip("holes cannot be told on this system")
	} else if from, _, err := h.data(0, size); err != nil || from == 0 {
		t.Skipf("holes cannot be told on this file system: %v", err)
	}
	var read int64
	for part, err := range Data(opened) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		read += int64(len(b))
	}
	if read < 10 || read > 2<<20 {
		t.Errorf("%d bytes read", read)
	}
	if _, err := ReadFile(fsys, "a", 2*size); !errors.Is(err, ErrHole) || !errors.Is(err, ErrTooLarge) {
		t.Errorf("read as text: %v", err)
	}
	if _, _, err := readFile(fsys, "a", 2*size); !errors.Is(err, ErrHole) {
		t.Errorf("read as text: %v", err)
	}
	if b, err := ReadFile(fsys, "a", 10); !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrHole) {
		t.Errorf("read with a limit: %d bytes, %v", len(b), err)
	}
}
