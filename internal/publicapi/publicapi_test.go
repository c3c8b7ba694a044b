// Package publicapi tests what the packages of this module promise. testdata has each exported name of each public package, a line
// each, so that a review shows how an API changes; the table in docs/LIBRARY.md says which of them may change, and when.
package publicapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "add new names to testdata. Delete the lines of names that go by hand")

const module = "github.com/ctxdir/ctxdir"

// promises are the rows of docs/LIBRARY.md, by their first words, and what the comments of their packages say.
var promises = map[string]string{
	"never":                "is stable from 0.1 on",
	"with a minor version": "may change with any minor version",
	"with any version":     "may change with any version",
	"at any time":          "promises nothing",
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Export, Name, Dir string
	GoFiles                       []string
	DepOnly                       bool
}

func list(t *testing.T) map[string]*listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export,Name,Dir,GoFiles,DepOnly", "./...")
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

// public returns the packages that programs of other modules can import, by their name below the module.
func public(all map[string]*listed) map[string]*listed {
	found := map[string]*listed{}
	for _, p := range all {
		below := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if !p.DepOnly && p.Export != "" && p.Name != "main" && !slices.Contains(strings.Split(below, "/"), "internal") {
			found[cmp.Or(below, "ctxdir")] = p
		}
	}
	return found
}

// table returns what docs/LIBRARY.md says of each package.
func table(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/LIBRARY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What may change\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\x60.*) \| ([a-z ]+)`).FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile(`\x60([a-z/]+)\x60`).FindAllStringSubmatch(row[1], -1) {
			said[name[1]] = strings.TrimSpace(row[2])
		}
	}
	return said
}

// TestPromises: docs/LIBRARY.md says of every public package what it promises, and so does the comment of the package.
func TestPromises(t *testing.T) {
	said, packages := table(t), public(list(t))
	for name := range said {
		if packages[name] == nil {
			t.Errorf("docs/LIBRARY.md lists %s, which is no public package", name)
		}
	}
	for name, p := range packages {
		sentence, ok := promises[said[name]]
		if !ok {
			t.Errorf("add %s to the table \"What may change\" in docs/LIBRARY.md", name)
			continue
		}
		if comment := comment(t, p); !strings.Contains(strings.Join(strings.Fields(comment), " "), sentence) {
			t.Errorf("the comment of package %s does not say %q, as docs/LIBRARY.md does", name, sentence)
		}
	}
}

// comment returns the comment of a package.
func comment(t *testing.T, p *listed) string {
	t.Helper()
	var all []string
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f.Doc.Text())
	}
	return strings.Join(all, "\n")
}

// TestAPI compares the exported names with testdata.
func TestAPI(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("testdata has the API on Linux")
	}
	all := list(t)
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	packages, said := public(all), table(t)
	for name, p := range packages {
		if said[name] == "at any time" {
			delete(packages, name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			pkg, err := imports.Import(p.ImportPath)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", strings.ReplaceAll(name, "/", "-")+".txt"), names(pkg), said[name])
		})
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(packages) {
		t.Errorf("testdata has %d files for %d public packages: %v", len(files), len(packages), err)
	}
}

// compare reports names that the file lacks, and names that only the file has. With -update, it adds the first.
func compare(t *testing.T, file string, have []string, promise string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	want := strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
	gone := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return slices.Contains(have, line) })
	added := slices.DeleteFunc(slices.Clone(have), func(line string) bool { return slices.Contains(want, line) })
	if len(gone) > 0 {
		advice := "Changes of this package are incompatible. Keep what was released, and add another name"
		if promise != "never" {
			advice = "If that is on purpose, delete the lines from internal/publicapi/" + file + ", and say in CHANGELOG.md how programs change"
		}
		t.Errorf("these names are gone or changed:\n  %s\n%s.", strings.Join(gone, "\n  "), advice)
	}
	if *update {
		all := append(want, added...)
		slices.Sort(all)
		if err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if len(added) > 0 {
		t.Errorf("these names are new:\n  %s\nAdd them: go test ./internal/publicapi -update", strings.Join(added, "\n  "))
	}
}

// names returns a line for each exported name of a package, sorted: constants, variables, functions and types, with their exported
// fields and methods.
func names(pkg *types.Package) []string {
	var lines []string
	by := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.TypeName:
			lines = append(lines, typeLines(o, by)...)
		case *types.Const:
			lines = append(lines, types.ObjectString(o, by)+" = "+o.Val().ExactString())
		default:
			lines = append(lines, types.ObjectString(o, by))
		}
	}
	slices.Sort(lines)
	return lines
}

// typeLines returns the lines of a type. All methods of an interface are on one line: another one breaks those that implement it.
func typeLines(o *types.TypeName, by types.Qualifier) []string {
	structure, ok := o.Type().Underlying().(*types.Struct)
	if !ok {
		return append([]string{types.ObjectString(o, by)}, methods(o, by)...)
	}
	lines := []string{"type " + o.Name() + " struct"}
	if o.IsAlias() {
		lines[0] = types.ObjectString(o, by)
		by = func(p *types.Package) string {
			if named, ok := types.Unalias(o.Type()).(*types.Named); ok && named.Obj().Pkg() == p {
				return ""
			}
			return p.Name()
		}
	}
	for field := range structure.Fields() {
		if field.Exported() {
			lines = append(lines, "type "+o.Name()+" struct, "+field.Name()+" "+types.TypeString(field.Type(), by))
		}
	}
	return append(lines, methods(o, by)...)
}

func methods(o *types.TypeName, by types.Qualifier) (lines []string) {
	if types.IsInterface(o.Type()) {
		return nil
	}
	set := types.NewMethodSet(types.NewPointer(o.Type()))
	for method := range set.Methods() {
		if f := method.Obj(); f.Exported() {
			lines = append(lines, types.ObjectString(f, by))
		}
	}
	return lines
}
