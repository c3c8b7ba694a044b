package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// encode returns a value as one line of JSON, without escaping for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("ctxtool: " + err.Error()) // records are plain structs
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// record prints a value as a line of JSON.
func (a *app) record(v any) error {
	_, err := a.out.Write(append(encode(v), '\n'))
	return err
}

// recordWith prints a line of JSON to which one more member is added, its value as it is: encoding/json would
// check every byte of it again.
func (a *app) recordWith(v any, key string, value json.RawMessage) error {
	b := encode(v)
	b = append(b[:len(b)-1], `,"`+key+`":`...)
	if _, err := a.out.Write(b); err != nil {
		return err
	}
	if _, err := a.out.Write(value); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, "}\n")
	return err
}

// printf prints a line for people.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// terminal returns the file that w is when it is a terminal.
func terminal(w any) (*os.File, bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// onTerminal reports whether results are read by somebody at a terminal.
func (a *app) onTerminal() bool {
	_, ok := terminal(a.out.w)
	return ok
}

// colour reports whether to colour results.
func (a *app) colour() bool {
	return a.onTerminal() && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// width is how many columns results may take, 0 for any number.
func (a *app) width() int {
	if n, err := strconv.Atoi(a.env("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := terminal(a.out.w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}

// table is rows of aligned columns. Where the rows are wider than width, one column gives way.
type table struct {
	head  []string
	right []bool // columns aligned to the right; those behind its end are not
	give  int    // the column that gives way
	rows  [][]string
}

const narrowest = 12 // columns that the one that gives way keeps

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = oneLine(cells[i])
	}
	t.rows = append(t.rows, cells)
}

func (t *table) print(w io.Writer, width int) error {
	all := append([][]string{t.head}, t.rows...)
	widths := make([]int, len(t.head))
	sum := 2 * (len(t.head) - 1)
	for i := range t.head {
		for _, row := range all {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
		sum += widths[i]
	}
	if width > 0 && sum > width {
		widths[t.give] = min(widths[t.give], max(narrowest, widths[t.give]-(sum-width)))
	}
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			cell = shorten(cell, widths[i])
			pad := strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell))
			if i < len(t.right) && t.right[i] {
				cell = pad + cell
			} else {
				cell += pad
			}
			b.WriteString(cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// shorten cuts a text that takes more than so many columns.
func shorten(s string, columns int) string {
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

// oneLine takes out line breaks and other control characters, which a terminal would obey.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// harmless takes out the control characters of a text of several lines.
func harmless(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

func humanSize(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func humanCount(n int64) string { return humanize.Comma(n) }

func humanTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return humanize.Time(t)
}

// plural is a number and the word for what it counts.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}
