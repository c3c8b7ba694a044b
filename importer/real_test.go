package importer

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realData is a folder of real histories, which cannot be part of the repository: claude-code, multimodal,
// chatgpt, codex, opencode, other-gemini-cli.
func realData(t *testing.T, folders ...string) (files []string) {
	t.Helper()
	dir := os.Getenv("CTXDIR_TEST_DATA")
	if dir == "" {
		t.Skip("CTXDIR_TEST_DATA names no folder of real histories")
	}
	for _, f := range folders {
		err := filepath.WalkDir(filepath.Join(dir, f), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no files in %v of %s", folders, dir)
	}
	return files
}

// canonical is a JSON value in one spelling, number literals as they are.
func canonical(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// objectsOf counts the objects of a file of lines, and the lines that hold anything else, by other means
// than the package.
func objectsOf(t *testing.T, path string) (objects map[string]int, badLines int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]int{}
	for _, l := range bytes.Split(b, []byte("\n")) {
		d := json.NewDecoder(bytes.NewReader(l))
		d.UseNumber()
		bad := int64(0)
		for d.More() {
			var v any
			if err := d.Decode(&v); err != nil {
				bad = 1
				break
			}
			if _, ok := v.(map[string]any); !ok {
				bad = 1
				continue
			}
			objects[canonical(t, v)]++
		}
		badLines += bad
	}
	return objects, badLines
}

// stored are the bodies of a store, each counted where it is owned.
func stored(t *testing.T, s *fakeStore) map[string]int {
	t.Helper()
	objects := map[string]int{}
	s.each(func(r Record) {
		d := json.NewDecoder(bytes.NewReader(r.Body))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		objects[canonical(t, v)]++
	})
	return objects
}

func TestRealTranscripts(t *testing.T) {
	for _, path := range realData(t, "claude-code", "multimodal") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := newFakeStore()
			s.chunk = 100
			got := importFile(t, s, path, Options{})
			if len(got.errs) > 0 || len(got.results) != 1 || got.results[0].Format != ClaudeCode {
				t.Fatalf("%+v", got)
			}
			want, bad := objectsOf(t, path)
			if d := cmp.Diff(want, stored(t, s)); d != "" {
				t.Errorf("%.2000s", d)
			}
			if int64(len(got.problems)) != bad {
				t.Errorf("%d problems, wanted %d: %v", len(got.problems), bad, got.problems)
			}
			c := s.only(t)
			if filepath.Base(path) == "dag_compact_after_rewind.jsonl" {
				if d := cmp.Diff([]string{"main@0+4", "fork-1@2+8"}, outline(c)); d != "" || c.active != "fork-1" {
					t.Errorf("%s %s", d, c.active)
				}
			} else if len(c.order) != 1 {
				t.Errorf("branches %v", outline(c))
			}
			before := s.dump()
			if r := importFile(t, s, path, Options{}).results[0]; r.Added != 0 || r.Skipped != got.results[0].Messages || s.dump() != before {
				t.Errorf("again: %+v", r)
			}
		})
	}
}

func TestRealStates(t *testing.T) {
	var early, late string
	for _, path := range realData(t, "claude-code") {
		switch {
		case strings.HasPrefix(filepath.Base(path), "71__69f9710768__0"):
			early = path
		case strings.HasPrefix(filepath.Base(path), "e0__12b8e855d7__0"):
			late = path
		}
	}
	if early == "" || late == "" {
		t.Skip("the two states of one session are not there")
	}
	alone, both := newFakeStore(), newFakeStore()
	alone.chunk, both.chunk = 100, 100
	whole := importFile(t, alone, late, Options{}).results[0]
	first := importFile(t, both, early, Options{}).results[0]
	then := importFile(t, both, late, Options{}).results[0]
	if then.Skipped != first.Added || then.Added != whole.Added-first.Added || first.Added == 0 {
		t.Errorf("%+v\n%+v\n%+v", whole, first, then)
	}
	if alone.dump() != both.dump() {
		t.Error("the two states one after the other are not the later one")
	}
}

func TestRealExports(t *testing.T) {
	total := 0
	for _, path := range realData(t, "chatgpt") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var export []struct{ Mapping map[string]any }
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&export); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		branches := 0
		for _, c := range export {
			inner := map[any]bool{}
			for _, n := range c.Mapping {
				want[canonical(t, n)]++
				inner[n.(map[string]any)["parent"]] = true
			}
			for name := range c.Mapping {
				total++
				if !inner[name] {
					branches++ // each leaf is the end of one
				}
			}
		}
		s := newFakeStore()
		got := importFile(t, s, path, Options{})
		if len(got.errs)+len(got.problems) > 0 || len(got.results) != len(export) {
			t.Fatalf("%s: %+v", path, got)
		}
		if d := cmp.Diff(want, stored(t, s)); d != "" {
			t.Errorf("%s: %s", path, d)
		}
		have := 0
		for _, r := range got.results {
			have += r.Branches
		}
		if have != branches {
			t.Errorf("%s: %d branches, wanted %d", path, have, branches)
		}
	}
	if total == 0 {
		t.Error("no nodes")
	}
}
