package main

import (
	"os"
	"strconv"

	"golang.org/x/term"
)

// display is a terminal that somebody reads.
type display interface {
	Size() (columns, rows int, err error)
}

type terminalFile struct{ *os.File }

func (f terminalFile) Size() (columns, rows int, err error) { return term.GetSize(int(f.Fd())) }

// displayOf returns the terminal that a writer or a reader is, if it is one.
func displayOf(w any) (display, bool) {
	switch f := w.(type) {
	case display:
		return f, true
	case *os.File:
		return terminalFile{f}, term.IsTerminal(int(f.Fd()))
	}
	return nil, false
}

// onTerminal reports whether results are read by somebody at a terminal.
func (a *app) onTerminal() bool {
	_, ok := displayOf(a.out.w)
	return ok
}

// dumb reports whether the terminal knows neither colours nor how to go back in a line.
func (a *app) dumb() bool { return a.env("TERM") == "dumb" }

// colours tells how to colour what is written to w: not at all, unless it is a terminal and nobody minds.
func (a *app) colours(w any) painter {
	_, ok := displayOf(w)
	return painter(ok && a.env("NO_COLOR") == "" && !a.dumb())
}

// width is how many columns results may take, 0 for any number.
func (a *app) width() int {
	if n, err := strconv.Atoi(a.env("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if d, ok := displayOf(a.out.w); ok {
		if n, _, err := d.Size(); err == nil {
			return n
		}
	}
	return 0
}

// The styles of what is shown, as the numbers of "select graphic rendition".
const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	yellow  = "33"
	redder  = "1;31"
	greener = "1;32"
	bluish  = "1;34"
	purple  = "35"
)

// eraseLine takes away what stands in the line that is being written.
const eraseLine = "\r\x1b[K"

// painter colours texts, or leaves them as they are.
type painter bool

func (p painter) paint(style, text string) string {
	if !p || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
