package legacy_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
)

// TestFindBeside: another process migrates everything that the search has seen in a folder but not yet looked at. The
// search passes it over.
func TestFindBeside(t *testing.T) {
	dir := t.TempDir()
	whole := legacytest.Whole(id)
	for _, name := range []string{"a", "b", "c"} {
		write(t, dir, name+"/context.json", legacytest.Split(whole))
		write(t, dir, name+"/messages_pool/x.json", "{}")
		write(t, dir, name+".json", whole)
	}
	found := 0
	for f, err := range legacy.Find(dir) {
		if found++; err != nil || found > 1 {
			t.Fatal(f, err)
		}
		for _, name := range []string{"a", "b", "c", "a.json", "b.json", "c.json"} {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, name+".old")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d found", found)
	}
}

// TestFindOdd: what has the name or the place of a legacy context gives a context or an error. Everything else in the
// folder is something else.
func TestFindOdd(t *testing.T) {
	whole := legacytest.Whole(id)
	other := func(n int) string { return legacytest.ID(n) + ".json" }
	dir := t.TempDir()
	want := map[string]string{
		"package.json":      "None",
		"tsconfig.txt":      "nothing",
		"empty.json":        "error",
		"zeros.json":        "error",
		"comment.json":      "error",
		"deep/comment.json": "None",
		other(1):            "Legacy",
		other(2):            "Legacy",
		other(3):            "Legacy",
		strings.ToUpper(legacytest.ID(4)) + ".JSON": "Legacy",
		other(5):         "None",
		other(6):         "error",
		legacytest.ID(7): "error",
		"link.json":      "nothing",
		"lost":           "Legacy",
		"whole.json":     "Legacy",
	}
	texts := map[string]string{
		"package.json":      `{"name":"x","config":{}}`,
		"tsconfig.txt":      "//",
		"empty.json":        "",
		"zeros.json":        strings.Repeat("\x00", 100),
		"comment.json":      "{ // no\n}",
		"deep/comment.json": "{ // no\n}",
		other(1):            `{"messages":[]}`,
		other(2):            `[]`,
		other(3):            "",
		strings.ToUpper(legacytest.ID(4)) + ".JSON": "7",
		other(5):                    `{"ctxdir":"message/1"}`,
		"lost/messages_pool/a.json": "{}",
		"whole.json":                whole,
	}
	for name, text := range texts {
		write(t, dir, name, text)
	}
	for _, name := range []string{other(6), legacytest.ID(7), "link.json"} {
		if err := os.Symlink(filepath.Join(dir, "whole.json"), filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	got := map[string]string{}
	for f, err := range legacy.Find(dir) {
		name, _ := filepath.Rel(dir, f.Path)
		got[filepath.ToSlash(name)] = map[bool]string{true: "Legacy", false: "None"}[f.Format.Legacy()]
		if err != nil {
			got[filepath.ToSlash(name)] = "error"
		}
	}
	for name, want := range want {
		if got := cmp.Or(got[name], "nothing"); got != want {
			t.Errorf("%s: %s, wanted %s", name, got, want)
		}
	}
	if len(got) > len(want) {
		t.Errorf("%v", got)
	}
	for name := range texts {
		if want, ok := want[name]; ok && want != "nothing" && findOne(filepath.Join(dir, name)) != want {
			t.Errorf("%s, asked for by its name: %s, wanted %s", name, findOne(filepath.Join(dir, name)), want)
		}
	}
}

// TestFindAmong: a file that is no JSON is told only beside a legacy context, or beside what was migrated; and one that
// is too long to be looked at whole is not taken for one.
func TestFindAmong(t *testing.T) {
	for with, want := range map[string]string{"whole.json": "error", "whole.json.old": "error", "whole.JSON.old-2": "error",
		"notes.txt.old": "None"} {
		dir := t.TempDir()
		write(t, dir, with, legacytest.Whole(id))
		write(t, dir, "comment.json", "{ // no\n}")
		write(t, dir, "large.json", `{"a":"`+strings.Repeat("x", 16<<20)+`"}`)
		if got, large := findOne(filepath.Join(dir, "comment.json")), findOne(filepath.Join(dir, "large.json")); got != want || large != "None" {
			t.Errorf("beside %s: %s, %s", with, got, large)
		}
	}
}

// findOne is what a path is said to be.
func findOne(path string) string {
	for f, err := range legacy.Find(path) {
		if err != nil {
			return "error"
		}
		if f.Format.Legacy() {
			return "Legacy"
		}
	}
	return "None"
}

// write makes a file below a folder, and the folders on the way to it.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
