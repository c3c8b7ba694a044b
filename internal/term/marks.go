package term

import (
	"strings"

	"github.com/rivo/uniseg"
)

// MarkedLine is a line with marks, as byte ranges.
type MarkedLine struct {
	line  string
	marks [][2]int
}

// Paint is the line with its marks coloured.
func (l *MarkedLine) Paint(paint Painter) string {
	var b strings.Builder
	at := 0
	for _, m := range l.marks {
		b.WriteString(l.line[at:m[0]])
		b.WriteString(paint.Paint(BoldRed, l.line[m[0]:m[1]]))
		at = m[1]
	}
	return b.String() + l.line[at:]
}

// BreakMarked breaks a text into lines of at most so many columns, between words where that is possible.
func BreakMarked(text string, marks [][2]int, columns int) (lines []MarkedLine) {
	begin := 0
	add := func(end int) {
		l := MarkedLine{line: text[begin:end]}
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
