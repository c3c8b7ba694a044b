package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// TestSite builds the site of this checkout, and follows every link of every page from file to file.
func TestSite(t *testing.T) {
	s, err := newSite("../..", groups)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := s.write(out); err != nil {
		t.Fatal(err)
	}
	trees := map[string]*html.Node{}
	for _, p := range s.pages {
		b, err := os.ReadFile(filepath.Join(out, p.Out))
		if err != nil {
			t.Fatal(err)
		}
		if trees[p.Out], err = html.Parse(strings.NewReader(string(b))); err != nil {
			t.Fatal(err)
		}
	}
	for name, tree := range trees {
		landmarks := map[atom.Atom]int{}
		for n := range tree.Descendants() {
			landmarks[n.DataAtom]++
			for _, a := range n.Attr {
				if a.Key == "href" || a.Key == "src" || a.Key == "srcset" {
					checkLink(t, out, trees, name, n, a.Val)
				}
			}
			if n.DataAtom == atom.Img && get(n, "alt") == "" && get(n.Parent, "class") != "brand" {
				t.Errorf("%s: a picture without a text: %s", name, get(n, "src"))
			}
		}
		for _, a := range []atom.Atom{atom.Main, atom.Nav, atom.Header, atom.H1} {
			if landmarks[a] != 1 {
				t.Errorf("%s has %d of <%s>", name, landmarks[a], a)
			}
		}
	}
}

// checkLink is about a written page: nothing but an <a> may lead to another machine.
func checkLink(t *testing.T, out string, trees map[string]*html.Node, name string, n *html.Node, link string) {
	t.Helper()
	file, anchor, _ := strings.Cut(link, "#")
	if strings.Contains(file, ":") {
		if n.DataAtom != atom.A {
			t.Errorf("%s asks for %s", name, link)
		}
		return
	}
	if file = path.Join(path.Dir(name), file); strings.HasPrefix(link, "#") {
		file = name
	}
	if _, err := os.Stat(filepath.Join(out, file)); err != nil {
		t.Errorf("%s: %s leads nowhere", name, link)
	}
	if anchor == "" {
		return
	}
	found := 0
	for n := range trees[file].Descendants() {
		if get(n, "id") == anchor {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%s: %d places for %s", name, found, link)
	}
}

// TestProblems: the site is not built while a page is missing or a link is broken.
func TestProblems(t *testing.T) {
	for _, test := range []struct{ name, readme, want string }{
		{"whole", "# One\n[two](docs/TWO.md#a-part), [here](#one), [code](main.go), [out](https://example.org/x)\n", ""},
		{"no page", "# One\n[x](docs/NONE.md)\n", "README.md: the link docs/NONE.md leads nowhere"},
		{"no anchor", "# One\n[x](docs/TWO.md#another-part)\n", "docs/TWO.md has no heading for docs/TWO.md#another-part"},
		{"no anchor here", "# One\n[x](#two)\n", "README.md has no heading for #two"},
		{"outside", "# One\n[x](../x.md)\n", "the link ../x.md leads nowhere"},
		{"no picture", "# One\n<picture><source srcset=\"docs/none.png\"></picture>\n", "docs/none.png leads nowhere"},
		{"another machine", "# One\n![x](https://example.org/x.png)\n", "is on another machine"},
		{"no group", "", "docs/TWO.md is in no group"},
		{"two groups", "# One\n", "README.md is in two groups"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range map[string]string{"README.md": test.readme, "docs/TWO.md": "# Two\n## A *part*\n", "main.go": "package main"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			g := []group{{"Start", []entry{{"README.md", "one"}, {"docs/TWO.md", "two"}}}}
			switch test.name {
			case "no group":
				g[0].Pages = g[0].Pages[:1]
			case "two groups":
				g[0].Pages = append(g[0].Pages, g[0].Pages[0])
			}
			_, err := newSite(root, g)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, wanted %q", err, test.want)
			}
		})
	}
}

// TestPage: what a page has of a Markdown file.
func TestPage(t *testing.T) {
	const rendered = `<h1>A walk</h1><p>By the <!-- hidden --> sea.</p><h2>The <code>quay</code>, at 9</h2><p>Six <b>km</b>.</p>
<h2>The quay at 9</h2>
<pre><code class="language-console">$ cat &gt; x &lt;&lt;'END'
one
END
$ ctxtool ls
ID  TITLE
</code></pre><pre><code class="language-sh">cat &gt; main.go &lt;&lt;'END'
package main
END
go build
</code></pre><table><tr><th>a</th></tr><tr><td>b</td><td>c</td></tr></table>`
	p, err := newPage(entry{"docs/WALK.md", "walk"}, "Start", strings.NewReader(rendered))
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.html()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`id="the-quay-at-9"`, `id="the-quay-at-9-1"`, `data-copy="cat &gt; x &lt;&lt;&#39;END&#39;` + "\none\nEND\nctxtool ls\n\"",
		`<span class="prompt">$</span>`, `<span class="kw">package</span> main`, "\nEND\ngo build\n",
		`<span class="output">ID  TITLE`, `<div class="table" tabindex="0"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "hidden") || p.Title != "A walk" || p.Out != "walk.html" || len(p.Headings) != 2 {
		t.Errorf("%q in %s: %d headings\n%s", p.Title, p.Out, len(p.Headings), text)
	}
	got, err := json.Marshal(p.sections())
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"a":"walk.html","p":"A walk","t":"By the sea."},` +
		`{"a":"walk.html#the-quay-at-9","p":"A walk","h":"The quay, at 9","t":"Six km."},` +
		`{"a":"walk.html#the-quay-at-9-1","p":"A walk","h":"The quay at 9",` +
		`"t":"$ cat \u003e x \u003c\u003c'END' one END $ ctxtool ls ID TITLE ` +
		`cat \u003e main.go \u003c\u003c'END' package main END go build a · b · c ·"}]`
	if string(got) != want {
		t.Errorf("sections\n%s\nwanted\n%s", got, want)
	}
}
