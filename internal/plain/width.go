// Package plain makes plain texts for people: short, on one line, without characters that control a terminal, and figures as
// people write them.
package plain

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Shorten cuts a text to a number of columns.
func Shorten(s string, columns int) string {
	if uniseg.StringWidth(s) <= columns {
		return s
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if used += g.Width(); used > columns-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// ShortenFront cuts a text to a number of columns, and keeps its end.
func ShortenFront(s string, columns int) string {
	width := uniseg.StringWidth(s)
	if width <= columns {
		return s
	}
	state := -1
	for width > columns-1 {
		var cut int
		_, s, cut, state = uniseg.FirstGraphemeClusterInString(s, state)
		width -= cut
	}
	return "…" + s
}

// ShortenMiddle cuts a name to a number of columns, and keeps its beginning and its end: names of one family share the
// beginning.
func ShortenMiddle(s string, columns int) string {
	if uniseg.StringWidth(s) <= columns {
		return s
	}
	end := (columns - 1) / 2
	return Shorten(s, columns-end) + strings.TrimPrefix(ShortenFront(s, end+1), "…")
}

// Paragraphs splits a text at empty lines. A paragraph with an indented line keeps its line breaks.
func Paragraphs(text string, f func(paragraph string, verbatim bool)) {
	for p := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if p = strings.Trim(p, "\n"); p != "" {
			f(p, strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") || strings.HasPrefix(p, "\t") || strings.Contains(p, "\n\t"))
		}
	}
}

// Wrap breaks the lines of a text at a width.
func Wrap(text string, columns int) string {
	var out []string
	Paragraphs(text, func(p string, verbatim bool) {
		if verbatim {
			out = append(out, p)
			return
		}
		var lines []string
		line := ""
		for _, word := range strings.Fields(p) {
			if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > columns {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		out = append(out, strings.Join(append(lines, line), "\n"))
	})
	return strings.Join(out, "\n\n")
}
