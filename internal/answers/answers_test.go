package answers_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/answers"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sum(text string) answers.Sum { return sha256.Sum256([]byte(text)) }

func path(dir string, question string) string {
	q := sum(question)
	return filepath.Join(dir, answers.Folder, hex.EncodeToString(q[:]))
}

func put(dir string, size int64, question, commits, answer string) {
	c := answers.Open(dir, size)
	defer c.Close()
	c.Put(sum(question), sum(commits), []byte(answer))
}

func get(dir string, question, commits string) string {
	c := answers.Open(dir, 0)
	defer c.Close()
	return string(c.Get(sum(question), sum(commits)))
}

func TestAnswers(t *testing.T) {
	dir := t.TempDir()
	if got := get(dir, "q", "1"); got != "" {
		t.Errorf("before: %q", got)
	}
	put(dir, 0, "q", "1", "the answer\nof two lines")
	if got := get(dir, "q", "1"); got != "the answer\nof two lines" {
		t.Errorf("got %q", got)
	}
	if got := get(dir, "other", "1") + get(dir, "q", "2"); got != "" {
		t.Errorf("another question, and other commits: %q", got)
	}
	put(dir, 0, "q", "2", "new")
	if old, now := get(dir, "q", "1"), get(dir, "q", "2"); old != "" || now != "new" {
		t.Errorf("replaced: %q, %q", old, now)
	}
	info, err := os.Stat(path(dir, "q"))
	check(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v", mode)
	}
	check(t, answers.Drop(dir))
	check(t, answers.Drop(dir))
	if _, err := os.Stat(filepath.Join(dir, answers.Folder)); !os.IsNotExist(err) {
		t.Errorf("after drop: %v", err)
	}
}

// TestDamage: a damaged answer is none, whatever byte is wrong, and is thrown away.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	put(dir, 0, "q", "1", "the answer")
	whole, err := os.ReadFile(path(dir, "q"))
	check(t, err)
	for at := range len(whole) + 1 {
		b := bytes.Clone(whole[:at])
		if at == len(whole) {
			b = append(b, 'x')
		}
		for _, b := range [][]byte{b, flipped(whole, at)} {
			check(t, os.WriteFile(path(dir, "q"), b, 0o600))
			if got := get(dir, "q", "1"); got != "" {
				t.Fatalf("byte %d: %q", at, got)
			}
			if _, err := os.Stat(path(dir, "q")); !os.IsNotExist(err) {
				t.Fatalf("byte %d: it is still there: %v", at, err)
			}
		}
	}
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at%len(b)] ^= 1
	return b
}

// TestBound: the answers are within the bound, and those that were used last stay.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	const size = 10 * 4096
	answer := string(make([]byte, 3000))
	old := time.Now().Add(-time.Hour)
	for i := range 30 {
		q := fmt.Sprint("q", i)
		put(dir, size, q, "1", answer)
		check(t, os.Chtimes(path(dir, q), old, old.Add(time.Duration(i)*time.Second)))
		if get(dir, "q0", "1") == "" { // its time is now
			t.Fatalf("%d: the answer that is used most is gone", i)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, answers.Folder))
	check(t, err)
	if n := len(entries); n < 8 || n > 10 || get(dir, "q29", "1") == "" || get(dir, "q20", "1") != "" {
		t.Errorf("%d answers", len(entries))
	}
	put(dir, 4096, "large", "1", string(make([]byte, 5000)))
	if get(dir, "large", "1") != "" {
		t.Error("an answer above the bound is kept")
	}
}

// TestRemovalWhileAnswering: what was read before a removal does not come into the cache after it.
func TestRemovalWhileAnswering(t *testing.T) {
	dir := t.TempDir()
	c := answers.Open(dir, 0)
	defer c.Close()
	check(t, answers.Drop(dir))
	c.Put(sum("q"), sum("1"), []byte("erased"))
	if _, err := os.Stat(filepath.Join(dir, answers.Folder)); !os.IsNotExist(err) {
		t.Errorf("the folder is there again: %v", err)
	}
	put(dir, 0, "other", "1", "fine")
	c.Put(sum("q"), sum("1"), []byte("erased"))
	if got := get(dir, "q", "1") + get(dir, "other", "1"); got != "fine" {
		t.Errorf("kept %q", got)
	}
}

// TestForeign: the cache follows no link, touches no file that is not its own, and is never a reason to fail.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	put(dir, 0, "q", "1", "x")
	folder := filepath.Join(dir, answers.Folder)
	foreign := filepath.Join(folder, "notes.txt")
	check(t, os.WriteFile(foreign, make([]byte, 50_000), 0o600))
	for i := range 5 {
		put(dir, 4096, fmt.Sprint(i), "1", "x")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	check(t, os.RemoveAll(folder))
	check(t, os.WriteFile(folder, nil, 0o600))
	put(dir, 0, "q", "1", "x")
	if got := get(dir, "q", "1"); got != "" {
		t.Errorf("%q", got)
	}
	check(t, answers.Drop(dir))
}

// TestLinkedFolder follows no link in place of the folder.
func TestLinkedFolder(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, answers.Folder)
	check(t, os.MkdirAll(filepath.Dir(folder), 0o700))
	if err := os.Symlink(t.TempDir(), folder); err != nil {
		t.Skipf("symbolic links cannot be made here: %v", err)
	}
	if c := answers.Open(dir, 0); c != nil {
		t.Error("a link is opened")
	}
}
