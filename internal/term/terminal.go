// Package term shows texts and figures to people: in colours, tables and pages on a terminal, with a bar for the progress
// of work, and never with characters that control the terminal.
package term

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Env is the value of a variable of the environment, as from [os.Getenv].
type Env func(key string) string

// NoColours is an environment without colours.
func NoColours(key string) string { return map[string]string{"NO_COLOR": "1"}[key] }

// dumb reports whether the terminal has neither colours nor cursor movement.
func (e Env) dumb() bool { return e("TERM") == "dumb" }

// Display is a terminal.
type Display interface {
	Size() (columns, rows int, err error)
}

type file struct{ *os.File }

func (f file) Size() (columns, rows int, err error) { return term.GetSize(int(f.Fd())) }

// displayOf returns a writer or a reader as a terminal, if it is one.
func displayOf(w any) (Display, bool) {
	switch f := w.(type) {
	case Display:
		return f, true
	case *os.File:
		return file{f}, term.IsTerminal(int(f.Fd()))
	}
	return nil, false
}

// Is reports whether a writer or a reader is a terminal: a file that is one, or a [Display].
func Is(w any) bool {
	_, ok := displayOf(w)
	return ok
}

// columns is the width of what goes to w, 0 if unlimited.
func (e Env) columns(w any) int {
	if n, err := strconv.Atoi(e("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if d, ok := displayOf(w); ok {
		if n, _, err := d.Size(); err == nil {
			return n
		}
	}
	return 0
}

// EraseLine clears the current line of a terminal, if it can.
func EraseLine(w io.Writer, env Env) {
	if Is(w) && !env.dumb() {
		_, _ = io.WriteString(w, "\r\x1b[K")
	}
}
