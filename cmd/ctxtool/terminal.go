package main

import (
	"os"
	"strconv"

	"golang.org/x/term"
)

// display is a terminal.
type display interface {
	Size() (columns, rows int, err error)
}

type terminalFile struct{ *os.File }

func (f terminalFile) Size() (columns, rows int, err error) { return term.GetSize(int(f.Fd())) }

// displayOf returns a writer or a reader as a terminal, if it is one.
func displayOf(w any) (display, bool) {
	switch f := w.(type) {
	case display:
		return f, true
	case *os.File:
		return terminalFile{f}, term.IsTerminal(int(f.Fd()))
	}
	return nil, false
}

// onTerminal reports whether results go to a terminal.
func (a *app) onTerminal() bool {
	_, ok := displayOf(a.out.w)
	return ok
}

// dumb reports whether the terminal has neither colours nor cursor movement.
func (a *app) dumb() bool { return a.env("TERM") == "dumb" }

// colours returns the painter for w. It paints only on a terminal, unless the user disabled colours.
func (a *app) colours(w any) painter {
	_, ok := displayOf(w)
	return painter(ok && a.env("NO_COLOR") == "" && !a.dumb())
}

// width is the number of columns for results, 0 if unlimited.
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

// Styles, as parameters of the escape sequence "select graphic rendition".
const (
	bold      = "1"
	dim       = "2"
	red       = "31"
	green     = "32"
	yellow    = "33"
	boldRed   = "1;31"
	boldGreen = "1;32"
	boldBlue  = "1;34"
	purple    = "35"
)

// eraseLine clears the current line.
const eraseLine = "\r\x1b[K"

// painter colours texts, or leaves them as they are.
type painter bool

func (p painter) paint(style, text string) string {
	if !p || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
