package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A page is a Markdown file as a tree of HTML.
type page struct {
	Source, Out   string
	Name          string // in the navigation
	Title         string // its first heading
	Group         string
	Headings      []*heading // of the second and third level
	SourceAddress string
	body          *html.Node
	anchors       map[string]bool
}

// A heading is one that the table of contents lists.
type heading struct {
	ID, Text string
	Level    int
}

func newPage(e entry, group string, rendered io.Reader) (*page, error) {
	p := &page{
		Source: e.Source, Out: output(e.Source), Name: e.Name, Title: e.Name, Group: group,
		SourceAddress: repository + "/blob/main/" + e.Source, anchors: map[string]bool{},
		body: &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div},
	}
	nodes, err := html.ParseFragment(rendered, p.body)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		p.body.AppendChild(n)
	}
	for _, n := range all(p.body) {
		switch {
		case n.Type == html.CommentNode:
			n.Parent.RemoveChild(n)
		case level(n) > 0:
			p.heading(n)
		case n.DataAtom == atom.Pre:
			err = errors.Join(err, highlight(n))
		case n.DataAtom == atom.Table:
			frame(n)
		case n.DataAtom == atom.Th && textOf(n) == "": // a header without a word confuses screen readers
			n.Data, n.DataAtom = "td", atom.Td
		case n.DataAtom == atom.Th:
			set(n, "scope", "col")
		}
	}
	return p, err
}

// all are the nodes below a node, in the order of the text: a list, so that a caller can change the tree.
func all(n *html.Node) (list []*html.Node) {
	for d := range n.Descendants() {
		list = append(list, d)
	}
	return list
}

func level(n *html.Node) int {
	switch n.DataAtom {
	case atom.H1:
		return 1
	case atom.H2:
		return 2
	case atom.H3:
		return 3
	case atom.H4:
		return 4
	default:
		return 0
	}
}

// heading gives a heading the anchor that it has on the repository's pages, so that links work in both places.
func (p *page) heading(n *html.Node) {
	text := textOf(n)
	id := slug(text)
	for i, base := 1, id; p.anchors[id]; i++ {
		id = fmt.Sprintf("%s-%d", base, i)
	}
	p.anchors[id] = true
	set(n, "id", id)
	if level(n) == 1 {
		p.Title = text
		return
	}
	if level(n) < 4 {
		p.Headings = append(p.Headings, &heading{id, text, level(n)})
	}
	link := element(atom.A, "class", "anchor", "href", "#"+id, "aria-label", "Link to "+text)
	link.AppendChild(&html.Node{Type: html.TextNode, Data: "#"})
	n.AppendChild(link)
}

func slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, strings.TrimSpace(text))
}

// frame lets a wide table scroll by itself, also by keyboard.
func frame(table *html.Node) {
	around := element(atom.Div, "class", "table", "tabindex", "0", "role", "group", "aria-label", "Table")
	table.Parent.InsertBefore(around, table)
	table.Parent.RemoveChild(table)
	around.AppendChild(table)
}

func element(a atom.Atom, attributes ...string) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: a.String(), DataAtom: a}
	for i := 0; i < len(attributes); i += 2 {
		set(n, attributes[i], attributes[i+1])
	}
	return n
}

func get(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func set(n *html.Node, name, value string) {
	for i := range n.Attr {
		if n.Attr[i].Key == name {
			n.Attr[i].Val = value
			return
		}
	}
	n.Attr = append(n.Attr, html.Attribute{Key: name, Val: value})
}

// textOf is the text of a node without the signs beside headings.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && (d.Parent.DataAtom != atom.A || get(d.Parent, "class") != "anchor") {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func (p *page) html() (string, error) {
	var b bytes.Buffer
	for c := range p.body.ChildNodes() {
		if err := html.Render(&b, c); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}
