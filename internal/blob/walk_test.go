package blob

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

func TestWalkPassesOverForeignFiles(t *testing.T) {
	s, fsys, dir := newStore(t)
	want := map[Sum]bool{}
	for i := range 50 {
		sum, _, err := s.PutUnsynced([]byte{byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		want[sum] = true
	}
	a := SumOf([]byte{1})
	other := "0000" + a.String()[4:]
	foreign := map[string]bool{
		"blobs/README": false, "blobs/.abc": false, "blobs/AB": false, leaf(a) + "/.0123": false, leaf(a) + "/x.zst": false,
		leaf(a) + "/" + a.String(): false, leaf(a) + "/" + strings.ToUpper(a.String()) + ".zst": false,
		leaf(a) + "/" + other + ".zst": false,
	}
	for name := range foreign {
		if err := vfs.WriteNew(fsys, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if os.Symlink("x", filepath.Join(dir, leaf(a), strings.Repeat("ab", 32)+".zst")) == nil {
		foreign[leaf(a)+"/"+strings.Repeat("ab", 32)+".zst"] = false
	}
	for sum, err := range s.Walk(func(p string) {
		if seen, ok := foreign[p]; !ok || seen {
			t.Errorf("%q reported", p)
		}
		foreign[p] = true
	}) {
		if err != nil || !want[sum] {
			t.Error(sum, err)
		}
		delete(want, sum)
	}
	if len(want) > 0 {
		t.Errorf("%d blobs not seen", len(want))
	}
	for p, seen := range foreign {
		if !seen {
			t.Errorf("%q not reported", p)
		}
	}
	for range s.Walk(nil) {
		break // an early end must not panic
	}
}

// TestLinksAreNotFollowed: neither for reading nor for writing, and a put mends the place.
func TestLinksAreNotFollowed(t *testing.T) {
	s, fsys, dir := newStore(t)
	b := text(2000)
	sum, _, err := s.Put(b)
	if err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, filepath.FromSlash(Path(sum)))
	if err := os.Rename(p, p+"x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(p)+"x", p); err != nil {
		t.Skipf("it cannot be made here: %v", err)
	}
	if _, err := s.Get(sum, 1<<20); err == nil {
		t.Error("a link was read")
	}
	if _, _, err := s.Put(b); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("a link was overwritten: %v", err)
	}
	s = Open(fsys, SetAside(func(path string) error { return fsys.Rename(path, "aside") }))
	if _, created, err := s.Put(b); err != nil || !created {
		t.Error(created, err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "aside")); err != nil || to != filepath.Base(p)+"x" {
		t.Error(to, err)
	}
	if info, err := os.Lstat(p); err != nil || !info.Mode().IsRegular() {
		t.Error(info, err)
	}
	if _, err := s.Get(sum, 1<<20); err != nil {
		t.Error(err)
	}
}
