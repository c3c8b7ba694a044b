package main

import (
	"fmt"
	"strings"

	"github.com/leaanthony/go-ansi-parser"
	"github.com/rivo/uniseg"
)

// A shown line is on the screen from a time until its scene ends. A command is typed until typed.
type shown struct {
	text         string
	scene, row   int
	begin, typed float64
}

// screens makes lines of a recording. It knows line ends and the beginning of a new screen, and no other movement.
func screens(events []output) (lines []*shown, ends []float64) {
	var now *shown
	scene, row := 0, 0
	for _, e := range events {
		if e.text == clear {
			ends = append(ends, e.at)
			scene, row, now = scene+1, 0, nil
			continue
		}
		if now == nil {
			now = &shown{scene: scene, row: row, begin: e.at}
			lines = append(lines, now)
		}
		text, complete := strings.CutSuffix(e.text, "\r\n")
		now.text += text
		now.typed = e.at
		if complete {
			now, row = nil, row+1
		}
	}
	return lines, append(ends, events[len(events)-1].at+afterward+afterScene)
}

// animate draws a recording: each line appears at its time, and a command letter by letter. Readers who want no motion see the
// last screen.
func animate(events []output, t theme) ([]byte, error) {
	lines, ends := screens(events)
	total := ends[len(ends)-1]
	var b, css strings.Builder
	t.window(&b, rows)
	fmt.Fprintf(&css, ".l,.c{animation:%.2fs step-end infinite}.c{visibility:hidden}.s{visibility:hidden}\n", total)
	for i, l := range lines {
		n := runLength(l.text)
		if n > columns || l.row >= rows {
			return nil, fmt.Errorf("%d columns in row %d: the screen has %d in %d: %q", n, l.row, columns, rows, l.text)
		}
		class := "l"
		if l.scene < len(ends)-1 {
			class += " s"
		}
		y := bar + l.row*lineHeight + fontSize
		fmt.Fprintf(&b, `<g class="%s" style="animation-name:l%d">`+"\n", class, i)
		if err := t.line(&b, l.text, y); err != nil {
			return nil, err
		}
		fmt.Fprintf(&css, "@keyframes l%d{0%%{visibility:hidden}%s{visibility:visible}%s{visibility:hidden}}\n",
			i, percent(l.begin, total), percent(ends[l.scene], total))
		if typed := n - len("$ "); l.typed > l.begin && typed > 0 {
			fmt.Fprintf(&b, `<rect class="c" style="animation-name:c%d" x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
				i, margin+2*cell, y-fontSize, float64(typed)*cell+2, lineHeight, t.ground)
			fmt.Fprintf(&css, "@keyframes c%d{0%%{visibility:hidden}%s{visibility:visible}"+
				"%s{visibility:visible;transform:none;animation-timing-function:steps(%d)}%s,to{visibility:hidden;transform:translateX(%.1fpx)}}\n",
				i, percent(l.begin, total), percent(l.begin+0.4, total), typed, percent(l.typed, total), float64(typed)*cell+4)
		}
		b.WriteString("</g>\n")
	}
	fmt.Fprintf(&b, "<style>%s@media (prefers-reduced-motion:reduce){.l,.c{animation:none}}</style>\n</svg>\n", css.String())
	return []byte(b.String()), nil
}

func percent(at, total float64) string { return fmt.Sprintf("%.3f%%", 100*at/total) }

// runLength is the number of columns that a line takes.
func runLength(line string) int {
	text, err := ansi.Cleanse(line)
	if err != nil {
		return 0
	}
	return uniseg.StringWidth(text)
}
