package main

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// link turns the links of a page into those of the site, and returns what leads nowhere.
func (s *site) link(p *page) (problems []error) {
	for _, n := range all(p.body) {
		name := map[atom.Atom]string{atom.A: "href", atom.Img: "src", atom.Source: "srcset"}[n.DataAtom]
		if name == "" || get(n, name) == "" {
			continue
		}
		to, err := s.target(p, get(n, name), n.DataAtom != atom.A)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.Source, err))
			continue
		}
		set(n, name, to)
		switch {
		case n.DataAtom == atom.Img:
			set(n, "loading", "lazy")
			s.size(p, n)
		case n.DataAtom == atom.Source && strings.Contains(get(n, "media"), "dark"):
			set(n, "data-scheme", "dark")
		}
	}
	return problems
}

// target is where a link of a page leads.
func (s *site) target(p *page, link string, picture bool) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	if u.Scheme != "" || u.Host != "" {
		if picture {
			return "", fmt.Errorf("the picture %s is on another machine", link)
		}
		return link, nil
	}
	source, anchor := p.Source, ""
	if u.Path != "" {
		source = path.Join(path.Dir(p.Source), u.Path)
	}
	if u.Fragment != "" {
		anchor = "#" + u.Fragment
	}
	if to := s.of[source]; to != nil {
		if anchor != "" && !to.anchors[u.Fragment] {
			return "", fmt.Errorf("%s has no heading for %s", source, link)
		}
		if to == p && anchor != "" {
			return anchor, nil
		}
		return relative(p.Out, to.Out) + anchor, nil
	}
	info, err := os.Stat(filepath.Join(s.root, source))
	switch {
	case !filepath.IsLocal(source) || err != nil:
		return "", fmt.Errorf("the link %s leads nowhere", link)
	case picture:
		s.images[source] = "pictures/" + path.Base(source)
		return relative(p.Out, s.images[source]), nil
	case info.IsDir():
		return repository + "/tree/main/" + source + anchor, nil
	default:
		return repository + "/blob/main/" + source + anchor, nil
	}
}

// size gives a picture its proportions, so that the text below does not move when it arrives.
func (s *site) size(p *page, img *html.Node) {
	for source, to := range s.images {
		if relative(p.Out, to) == get(img, "src") {
			if w, h := measure(filepath.Join(s.root, source)); w > 0 {
				set(img, "width", fmt.Sprint(w))
				set(img, "height", fmt.Sprint(h))
			}
		}
	}
}
