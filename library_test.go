package ctxdir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLibraryPage: every block of Go in docs/LIBRARY.md is part of an example, which compiles and runs, and every
// option and error is named.
func TestLibraryPage(t *testing.T) {
	page, err := os.ReadFile("docs/LIBRARY.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("example*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		examples.Write(b)
	}
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 10 {
		t.Fatalf("%d blocks found", len(blocks))
	}
	for _, block := range blocks {
		if block[1] != "go" || !strings.Contains(examples.String(), "\n"+block[2]) {
			t.Errorf("not in any example:\n%s", block[2])
		}
	}
	for file, pattern := range map[string]string{
		"options.go": `(?m)^\t([A-Z]\w+) +[\w.]+$`,
		"errors.go":  `(?m)^\t(Err\w+) += `,
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1)
		if len(names) < 5 {
			t.Errorf("%s has %d of them", file, len(names))
		}
		for _, name := range names {
			if !strings.Contains(string(page), "`"+name[1]+"`") {
				t.Errorf("%s of %s is not named", name[1], file)
			}
		}
	}
}
