package vfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestHoles: of a file of a terabyte that was hardly written only the written parts are read, and as text it is
// refused.
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
	if h, ok := opened.(holeFinder); !ok {
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

// TestHolesFound: what is asked of a file with holes is answered by what was written, and a copy takes no more room.
func TestHolesFound(t *testing.T) {
	dir := t.TempDir()
	fsys, err := OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	const size = 1 << 40
	f, err := fsys.OpenFile("a", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Skipf("no files of this size here: %v", err)
	}
	for at, words := range map[int64]string{0: "first", 1 << 30: "second", size - 5: "third"} {
		if _, err := f.WriteAt([]byte(words), at); err != nil {
			t.Fatal(err)
		}
	}
	if h, ok := f.(holeFinder); !ok {
		t.Skip("holes cannot be told on this system")
	} else if from, _, err := h.data(1<<20, size); err != nil || from == 1<<20 {
		t.Skipf("holes cannot be told on this file system: %v", err)
	}
	if at := NextData(f, 1<<20, size); at > 1<<30 || at < 1<<30-1<<20 {
		t.Errorf("the next data is at %d", at)
	}
	if at := NextData(f, 0, size); at != 0 {
		t.Errorf("the first data is at %d", at)
	}
	if at := NextData(f, size, size); at != size {
		t.Errorf("behind the end there is data at %d", at)
	}
	for _, c := range []struct {
		from, to int64
		want     bool
	}{{0, size, true}, {0, 5, false}, {2 << 20, 4 << 20, true}, {0, 2 << 20, true}, {size - 2<<20, size, true}} {
		if got := HasHole(f, c.from, c.to); got != c.want {
			t.Errorf("a hole in [%d, %d): %v", c.from, c.to, got)
		}
	}
	if b, err := ReadData(f, 2, 1<<30); err != nil || len(b) > 4<<20 || !bytes.HasPrefix(b, []byte("rst\x00")) ||
		!bytes.Contains(b, []byte("second")) || !bytes.HasSuffix(b, []byte("third")) {
		t.Errorf("%d bytes read, %v", len(b), err)
	}
	if b, err := ReadData(f, 2, 9); err != nil || len(b) != 9 {
		t.Errorf("%d bytes read, %v", len(b), err)
	}
	if err := CopyFile(t.Context(), fsys, "b", fsys, "a"); err != nil {
		t.Fatal(err)
	}
	to, err := fsys.OpenFile("b", os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	n := int64(0)
	for part, err := range Data(to) {
		if err != nil {
			t.Fatal(err)
		}
		n += part.Size()
	}
	last := make([]byte, 5)
	if m, err := to.ReadAt(last, size-5); m != 5 || string(last) != "third" || n > 8<<20 {
		t.Errorf("the copy has %d bytes, and ends in %q, %v", n, last[:m], err)
	}
}
