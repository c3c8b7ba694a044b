package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
	"github.com/rivo/uniseg"
)

// printHits prints hits for people, grouped by context.
func (a *app) printHits(s *ctxdir.Store, hits []search.Hit) error {
	paint, short := a.colours(a.out.w), shortIDsIn(s)
	for _, group := range grouped(len(hits), func(i int) uuid.UUID { return hits[i].Context }) {
		first := &hits[group[0]]
		if err := a.printf("%s\n", a.contextHead(paint, short, first.Context, first.Title, first.Labels)); err != nil {
			return err
		}
		for _, i := range group {
			if err := a.printHit(paint, i+1, &hits[i]); err != nil {
				return err
			}
		}
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	return nil
}

// snippetWidth is the width of a text behind a margin.
func (a *app) snippetWidth(margin int) int { return max(min(cmp.Or(a.width(), 100), 100)-margin, 20) }

// contextHead is the line above the hits in a context: title, id and project.
func (a *app) contextHead(paint painter, short shortIDs, id uuid.UUID, title string, labels map[string]string) string {
	brief, project := short.of(id), oneLine(lastFolders(labels["project"]))
	room := cmp.Or(a.width(), 100) - len(brief) - 2
	if project != "" {
		room -= uniseg.StringWidth(project) + 2
	}
	head := paint.paint(bold, shorten(cmp.Or(oneLine(title), "(no title)"), max(room, minWidth))) + "  " + paint.paint(dim, brief)
	if project != "" {
		head += "  " + paint.paint(purple, project)
	}
	return head
}

// printHit prints the number of a hit, where it is, and its snippet.
func (a *app) printHit(paint painter, n int, h *search.Hit) error {
	branches := strings.Join(h.Branches, ", ")
	if branches == "" {
		branches = "removed"
	}
	number, role := fmt.Sprintf("%3d", n), cmp.Or(h.Role, "-")
	if h.Kind != "" { // such as a moment, and what it is
		role += " " + h.Type
	}
	err := a.printf("%s  %s  %s  %s  %s\n", paint.paint(boldBlue, number), paint.paint(voiceStyle(h.Role), oneLine(role)),
		h.At.Local().Format("2006-01-02 15:04"), oneLine(branches), paint.paint(dim, fmt.Sprint("#", h.Position)))
	if err != nil {
		return err
	}
	for _, path := range h.Paths {
		if err := a.printf("     %s\n", paint.paint(yellow, oneLine(path))); err != nil {
			return err
		}
	}
	for _, line := range breakMarked(h.Snippet, h.Marks, a.snippetWidth(5)) {
		if err := a.printf("     %s\n", line.text(paint)); err != nil {
			return err
		}
	}
	return nil
}

// markedLine is a line with marks, as byte ranges.
type markedLine struct {
	line  string
	marks [][2]int
}

// text is the line with its marks coloured.
func (l *markedLine) text(paint painter) string {
	var b strings.Builder
	at := 0
	for _, m := range l.marks {
		b.WriteString(l.line[at:m[0]])
		b.WriteString(paint.paint(boldRed, l.line[m[0]:m[1]]))
		at = m[1]
	}
	return b.String() + l.line[at:]
}

// breakMarked breaks a text into lines of at most so many columns, between words where that is possible.
func breakMarked(text string, marks [][2]int, columns int) (lines []markedLine) {
	begin := 0
	add := func(end int) {
		l := markedLine{line: text[begin:end]}
		for _, m := range marks {
			if from, to := max(m[0], begin), min(m[1], end); from < to {
				l.marks = append(l.marks, [2]int{from - begin, to - begin})
			}
		}
		lines = append(lines, l)
		for begin = end; begin < len(text) && text[begin] == ' '; {
			begin++
		}
	}
	width, space, at := 0, -1, 0
	rest, state := text, -1
	for rest != "" {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if cluster == " " {
			space = at
		}
		if width += w; width > columns && at > begin {
			end := at
			if space > begin {
				end = space
			}
			add(end)
			width, space = uniseg.StringWidth(text[min(begin, at):at])+w, -1
		}
		at += len(cluster)
	}
	if begin < len(text) {
		add(len(text))
	}
	return lines
}
