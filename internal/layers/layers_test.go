// Package layers tests that the files of a package can be read from the ground up: if a file uses a definition, a method
// or a field of another file, that one uses nothing of the first, nor of a file that uses the first.
package layers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNoCircleOfFiles(t *testing.T) {
	all, fset := list(t), token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	for path, p := range all {
		if p.DepOnly || len(p.GoFiles) == 0 {
			continue
		}
		t.Run(path, func(t *testing.T) {
			uses := p.files(t, fset, imports)
			arrows := 0
			for _, to := range uses {
				arrows += len(to)
			}
			t.Logf("%d files, %d arrows", len(uses), arrows)
			for _, circle := range circles(uses) {
				t.Errorf("%d files use each other:%s", len(circle), uses.within(circle))
			}
		})
	}
}

// listed is a package as go list describes it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool // it is not of this module
}

// list returns the packages of this module, and those that they import.
func list(t *testing.T) map[string]*listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly", "./...")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]*listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = &p
	}
}

// graph has for each file the files that it uses, and which of their names.
type graph map[string]map[string]map[string]bool

// files returns the graph of the files of a package, without tests.
func (p *listed) files(t *testing.T, fset *token.FileSet, imports types.Importer) graph {
	t.Helper()
	uses, files := graph{}, make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		var err error
		uses[name] = map[string]map[string]bool{}
		if files[i], err = parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	conf := types.Config{Importer: imports}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := conf.Check(p.ImportPath, fset, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	file := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	for ident, object := range info.Uses {
		if from, to := file(ident.Pos()), file(object.Pos()); object.Pkg() == pkg && from != to {
			if uses[from][to] == nil {
				uses[from][to] = map[string]bool{}
			}
			uses[from][to][object.Name()] = true
		}
	}
	return uses
}

// circles returns the groups of files that reach each other.
func circles(uses graph) (all [][]string) {
	reach := map[string]map[string]bool{}
	for from := range uses {
		seen := map[string]bool{}
		for next := []string{from}; len(next) > 0; next = next[1:] {
			for to := range uses[next[0]] {
				if !seen[to] {
					seen[to], next = true, append(next, to)
				}
			}
		}
		reach[from] = seen
	}
	done := map[string]bool{}
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		if !reach[from][from] || done[from] {
			continue
		}
		var circle []string
		for _, to := range slices.Sorted(maps.Keys(reach[from])) {
			if reach[to][from] {
				circle, done[to] = append(circle, to), true
			}
		}
		all = append(all, circle)
	}
	return all
}

// within returns the arrows between some files, one a line, with what ties them.
func (uses graph) within(circle []string) string {
	var b strings.Builder
	for _, from := range circle {
		for _, to := range circle {
			if names := slices.Sorted(maps.Keys(uses[from][to])); len(names) > 0 {
				fmt.Fprintf(&b, "\n\t%s -> %s: %s", from, to, strings.Join(names, ", "))
			}
		}
	}
	return b.String()
}

func TestCircles(t *testing.T) {
	name := map[string]bool{"f": true}
	uses := graph{"a": {"b": name, "e": name}, "b": {"c": name}, "c": {"b": name, "d": name}, "d": {"c": name}, "e": {"d": name}}
	if got, want := fmt.Sprint(circles(uses)), "[[b c d]]"; got != want {
		t.Errorf("circles %s, want %s", got, want)
	}
	if got, want := uses.within([]string{"b", "c"}), "\n\tb -> c: f\n\tc -> b: f"; got != want {
		t.Errorf("arrows %q, want %q", got, want)
	}
}
