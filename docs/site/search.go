package main

import (
	"encoding/json"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A section is what the search finds: the text below a heading.
type section struct {
	Address string `json:"a"`
	Page    string `json:"p"`
	Heading string `json:"h,omitempty"`
	Text    string `json:"t"`
}

// index is a script with the text of all pages. A page that is read from a disk can load scripts, but no other files.
func (s *site) index() ([]byte, error) {
	list := []section{}
	for _, p := range s.pages {
		list = append(list, p.sections()...)
	}
	b, err := json.Marshal(list)
	return append(append([]byte("window.searchIndex = "), b...), ";\n"...), err
}

func (p *page) sections() (list []section) {
	now := section{Address: p.Out, Page: p.Title}
	var text strings.Builder
	end := func() {
		now.Text = strings.Join(strings.Fields(text.String()), " ")
		list = append(list, now)
		text.Reset()
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case level(n) == 1:
			return
		case level(n) > 1:
			end()
			now = section{Address: p.Out + "#" + get(n, "id"), Page: p.Title, Heading: textOf(n)}
			return
		case n.Type == html.TextNode:
			text.WriteString(n.Data)
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
		if n.DataAtom == atom.Td || n.DataAtom == atom.Th {
			text.WriteString(" · ")
		}
	}
	walk(p.body)
	end()
	return list
}
