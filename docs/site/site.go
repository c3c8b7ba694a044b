package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
)

// repository is where links to files that are no pages lead.
const repository = "https://github.com/ctxdir/ctxdir"

//go:embed assets
var assets embed.FS

// A site is all pages, and the files that they show.
type site struct {
	root   string
	groups []group
	pages  []*page
	of     map[string]*page  // by source
	images map[string]string // where a file of the repository goes
}

// newSite reads all pages. Its error names every link that leads nowhere.
func newSite(root string, groups []group) (*site, error) {
	s := &site{root: root, groups: groups, of: map[string]*page{}, images: map[string]string{}}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	for _, g := range groups {
		for _, e := range g.Pages {
			text, err := os.ReadFile(filepath.Join(root, e.Source))
			if err != nil {
				return nil, err
			}
			var rendered bytes.Buffer
			if err := markdown.Convert(text, &rendered); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Source, err)
			}
			p, err := newPage(e, g.Name, &rendered)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.Source, err)
			}
			if s.of[e.Source] != nil {
				return nil, fmt.Errorf("%s is in two groups", e.Source)
			}
			s.pages, s.of[e.Source] = append(s.pages, p), p
		}
	}
	problems := s.ungrouped()
	for _, p := range s.pages { // all headings are known now
		problems = append(problems, s.link(p)...)
	}
	return s, errors.Join(problems...)
}

// ungrouped finds Markdown in docs/ that no reader of the site would see.
func (s *site) ungrouped() (problems []error) {
	err := fs.WalkDir(os.DirFS(s.root), "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err == nil && path.Ext(name) == ".md" && s.of[name] == nil {
			problems = append(problems, fmt.Errorf("%s is in no group of docs/site/groups.go", name))
		}
		return err
	})
	return append(problems, err)
}

// output is the address of a page in the site.
func output(source string) string {
	if source == "README.md" {
		return "index.html"
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(source, "docs/"), ".md")) + ".html"
}

// relative is the address of a file of the site in a page of it.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// view is what the template shows.
type view struct {
	*page
	Site           *site
	Body           template.HTML
	Root           string // from this page to the folder of the site
	Previous, Next *page
	Repository     string
}

// Href is where a page is, seen from the one that is shown.
func (v view) Href(source string) string { return v.Root + output(source) }

// Groups are those of the navigation.
func (s *site) Groups() []group { return s.groups }

func (s *site) write(out string) error {
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return err
	}
	put := func(name string, b []byte) error {
		name = filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, b, 0o644)
	}
	for i, p := range s.pages {
		body, err := p.html()
		if err != nil {
			return err
		}
		v := view{page: p, Site: s, Body: template.HTML(body), Root: relative(p.Out, ""), Repository: repository} //nolint:gosec // our own text
		if i > 0 {
			v.Previous = s.pages[i-1]
		}
		if i+1 < len(s.pages) {
			v.Next = s.pages[i+1]
		}
		var b bytes.Buffer
		if err := t.Execute(&b, v); err != nil {
			return err
		}
		if err := put(p.Out, b.Bytes()); err != nil {
			return err
		}
	}
	files, err := s.files()
	for name, b := range files {
		err = errors.Join(err, put(name, b))
	}
	return err
}

// files are those beside the pages: style, script, the index of the search, and pictures. The colours are those of the
// page of ctxtool serve.
func (s *site) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	index, err := s.index()
	if err != nil {
		return nil, err
	}
	files["search.js"] = index
	tokens, err := os.ReadFile(filepath.Join(s.root, "web/css/tokens.css"))
	if err != nil {
		return nil, err
	}
	style, err := assets.ReadFile("assets/site.css")
	if err != nil {
		return nil, err
	}
	files["site.css"] = slices.Concat(tokens, []byte("\n"), style)
	if files["site.js"], err = assets.ReadFile("assets/site.js"); err != nil {
		return nil, err
	}
	s.images["web/src/icon.svg"] = "icon.svg"
	for from, to := range s.images {
		if files[to], err = os.ReadFile(filepath.Join(s.root, from)); err != nil {
			return nil, err
		}
	}
	return files, nil
}
