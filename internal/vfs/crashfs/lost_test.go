package crashfs

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// TestNothingDurableIsLost renames and moves durable files and folders, makes and removes folders, and syncs some
// folders: whatever a crash keeps of it, every file is somewhere, whole.
func TestNothingDurableIsLost(t *testing.T) {
	const files = 4
	dirs := []string{".", "a", "b", "c", "a/x", "b/x", "a/x/y"}
	anyDir, anyName := rapid.SampledFrom(dirs), rapid.SampledFrom([]string{"0", "1", "2", "3", "a", "b", "c", "x", "y"})
	rapid.Check(t, func(t *rapid.T) {
		f := New()
		for _, d := range []string{"a", "b", "a/x"} {
			_ = f.Mkdir(d)
		}
		for i := range files {
			put(t, f, path.Join(anyDir.Draw(t, "home"), fmt.Sprint(i)), fmt.Sprint("file", i))
		}
		if err := f.SyncAll(); err != nil {
			t.Fatal(err)
		}
		want := found(t, f)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			dir, name := anyDir.Draw(t, "dir"), anyName.Draw(t, "name")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				_ = f.Mkdir(path.Join(dir, name))
			case 1:
				_ = f.SyncDir(dir)
			case 2: // folders alone
				if info, err := f.Lstat(path.Join(dir, name)); err == nil && info.IsDir() {
					_ = f.Remove(path.Join(dir, name))
				}
			default: // never onto a file
				to := path.Join(anyDir.Draw(t, "to dir"), anyName.Draw(t, "to"))
				if _, err := f.Lstat(to); err != nil {
					_ = f.Rename(path.Join(dir, name), to)
				}
			}
		}
		for _, c := range []Choice{Lose, Keep, ZeroFill} {
			survived(t, f, c, want)
		}
		for seed := range uint64(30) {
			survived(t, f, Random(seed), want)
		}
	})
}

func put(t *rapid.T, f *FS, name, data string) {
	h, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return // its folder is not there
	}
	if _, err := h.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
}

func survived(t *rapid.T, f *FS, c Choice, want map[string]int) {
	after := f.Crash(c)
	got := found(t, after)
	for data := range want {
		if got[data] == 0 {
			var log []string
			for _, o := range f.Ops() {
				log = append(log, o.String())
			}
			t.Fatalf("%v lost %s\n%s\nbefore:\n%safter:\n%s", c, data, strings.Join(log, "\n"), f.Dump(), after.Dump())
		}
	}
}

// found counts the names of each content.
func found(t *rapid.T, f *FS) map[string]int {
	m := map[string]int{}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		if depth > 20 {
			t.Fatal("folders in a circle")
		}
		for e, err := range f.ReadDir(dir) {
			if err != nil {
				t.Fatal(err)
			}
			p := path.Join(dir, e.Name())
			if e.IsDir() {
				walk(p, depth+1)
			} else if b, err := vfs.ReadFile(f, p, 100); err != nil {
				t.Fatal(err)
			} else {
				m[string(b)]++
			}
		}
	}
	walk(".", 0)
	return m
}
