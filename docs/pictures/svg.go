package main

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/leaanthony/go-ansi-parser"
	"github.com/rivo/uniseg"
)

// A theme is the colours of a picture.
type theme struct {
	name, ground, frame, text, faint string
	colours                          map[string]string // by the parser's names of the sixteen colours
}

var themes = []theme{
	{"light", "#ffffff", "#d0d7de", "#1f2328", "#6e7781", map[string]string{
		"Maroon": "#cf222e", "Green": "#116329", "Olive": "#7d4e00", "Navy": "#0550ae", "Purple": "#8250df", "Teal": "#1b7c83",
		"Red": "#cf222e", "Lime": "#116329", "Yellow": "#7d4e00", "Blue": "#0550ae", "Fuchsia": "#8250df", "Aqua": "#1b7c83",
	}},
	{"dark", "#0d1117", "#30363d", "#e6edf3", "#8b949e", map[string]string{
		"Maroon": "#ff7b72", "Green": "#3fb950", "Olive": "#d29922", "Navy": "#58a6ff", "Purple": "#bc8cff", "Teal": "#39c5cf",
		"Red": "#ff7b72", "Lime": "#3fb950", "Yellow": "#d29922", "Blue": "#58a6ff", "Fuchsia": "#bc8cff", "Aqua": "#39c5cf",
	}},
}

// Sizes in pixels.
const (
	fontSize   = 14
	cell       = 8.43 // the width of a column
	lineHeight = 20
	margin     = 20
	bar        = 36 // the bar on top of the window
)

// window begins a picture of a terminal with rows.
func (t theme) window(b *strings.Builder, rows int) {
	width, height := 2*margin+columns*cell, bar+margin+rows*lineHeight
	const fonts = `ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono','DejaVu Sans Mono',monospace`
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" font-family="`+fonts+`" font-size="%d">`+"\n",
		width, height, fontSize)
	fmt.Fprintf(b, `<rect x=".5" y=".5" width="%.0f" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, t.ground, t.frame)
	for i := range 3 {
		fmt.Fprintf(b, `<circle cx="%d" cy="18" r="5.5" fill="%s"/>`+"\n", margin+20*i+2, t.frame)
	}
}

// line draws one line with its baseline at y. Each run of one style is stretched to its columns, so that tables stand straight
// in any font.
func (t theme) line(b *strings.Builder, line string, y int) error {
	runs, err := ansi.Parse(line, ansi.WithIgnoreInvalidCodes())
	if err != nil {
		return err
	}
	column := 0
	for _, run := range runs {
		text := strings.TrimRight(run.Label, " ")
		if n := uniseg.StringWidth(text); n > 0 {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s>`,
				margin+float64(column)*cell, y, float64(n)*cell, t.style(run))
			if err := xml.EscapeText(b, []byte(text)); err != nil {
				return err
			}
			b.WriteString("</text>\n")
		}
		column += uniseg.StringWidth(run.Label)
	}
	return nil
}

func (t theme) style(run *ansi.StyledText) string {
	fill, style := t.text, ""
	if run.Faint() {
		fill = t.faint
	}
	if run.FgCol != nil {
		if c, ok := t.colours[run.FgCol.Name]; ok {
			fill = c
		}
	}
	if run.Bold() {
		style = ` font-weight="600"`
	}
	return fmt.Sprintf(` fill="%s"%s`, fill, style)
}
