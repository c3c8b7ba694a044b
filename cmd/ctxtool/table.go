package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/dustin/go-humanize"
	"github.com/rivo/uniseg"
)

// table aligns rows in columns, or prints their records with --json. If the rows are wider than the terminal, it cuts
// the columns in shrink to the widths in keep, then leaves out the columns in drop, and at last cuts to minWidth.
type table struct {
	head    []string
	right   []int       // columns aligned to the right
	shrink  []int       // columns to cut, in this order
	keep    map[int]int // widths that cut columns keep while others can be left out; minWidth for those without
	ends    []int       // columns of which a cut keeps the end
	names   []int       // columns of names, which a cut shortens in the middle, and keeps distinct while others can be left out
	bare    bool        // without head
	drop    []int       // columns to leave out, in this order
	records []any
	rows    [][]string
	styles  map[[2]int]string // of cells, by row and column
}

// minWidth is the least width that a cut column keeps.
const minWidth = 11

// The widths that columns of titles and of names keep while lesser columns can be left out.
const (
	titleWidth = 24
	nameWidth  = 16
)

// add adds a row. Its record is nil if the row is only for people.
func (t *table) add(record any, cells ...string) {
	if record != nil {
		t.records = append(t.records, record)
	}
	for i := range cells {
		cells[i] = oneLine(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// style colours a cell of the last row.
func (t *table) style(column int, style string) {
	if t.styles == nil {
		t.styles = map[[2]int]string{}
	}
	t.styles[[2]int{len(t.rows) - 1, column}] = style
}

// print writes the table; a width of 0 is unlimited.
func (t *table) print(w io.Writer, width int, colours painter) error {
	widths := t.widths(width)
	if !t.bare {
		if err := t.row(w, t.head, widths, func(int) string { return bold }, colours); err != nil {
			return err
		}
	}
	for i, row := range t.rows {
		if err := t.row(w, row, widths, func(column int) string { return t.styles[[2]int{i, column}] }, colours); err != nil {
			return err
		}
	}
	return nil
}

// widths are the widths of the columns, negative for those that are left out.
func (t *table) widths(width int) []int {
	natural := t.naturalWidths()
	if width == 0 || sumOf(natural) <= width {
		return natural
	}
	least := make([]int, len(natural))
	for _, i := range t.shrink {
		least[i] = max(t.keep[i], minWidth)
		if slices.Contains(t.names, i) {
			least[i] = t.distinctWidth(i, least[i], natural[i])
		}
	}
	var widths []int
	for left := 0; ; left++ {
		widths = slices.Clone(natural)
		for _, i := range t.drop[:left] {
			widths[i] = -1
		}
		t.cut(widths, width, least)
		if sumOf(widths) <= width || left == len(t.drop) {
			break
		}
	}
	t.cut(widths, width, make([]int, len(widths)))
	return widths
}

func (t *table) naturalWidths() []int {
	widths := make([]int, len(t.head))
	for i := range t.head {
		widths[i] = uniseg.StringWidth(t.head[i])
		for _, row := range t.rows {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
	}
	return widths
}

// sumOf is the width of a row.
func sumOf(widths []int) int {
	sum := -2
	for _, w := range widths {
		if w >= 0 {
			sum += w + 2
		}
	}
	return sum
}

// cut makes columns narrower until a row fits, but none below its least width.
func (t *table) cut(widths []int, width int, least []int) {
	for _, i := range t.shrink {
		if over := sumOf(widths) - width; over > 0 && widths[i] > 0 {
			widths[i] = min(widths[i], max(least[i], minWidth, widths[i]-over))
		}
	}
}

// maxNames is the number of names that a table keeps distinct.
const maxNames = 200

// distinctWidth is the least width from least on at which the cells of a column are as distinct as at their natural
// width.
func (t *table) distinctWidth(column, least, natural int) int {
	names := map[string]bool{}
	for _, row := range t.rows {
		if names[row[column]] = true; len(names) > maxNames {
			return least
		}
	}
	for width := least; width < natural; width++ {
		short := map[string]bool{}
		for name := range names {
			short[shortenMiddle(name, width)] = true
		}
		if len(short) == len(names) {
			return width
		}
	}
	return natural
}

func (t *table) row(w io.Writer, cells []string, widths []int, style func(column int) string, colours painter) error {
	var b strings.Builder
	gap := 0 // blanks before the next cell, so that no line ends with blanks
	for i, cell := range cells {
		if widths[i] < 0 {
			continue
		}
		switch {
		case slices.Contains(t.ends, i):
			cell = shortenFront(cell, widths[i])
		case slices.Contains(t.names, i):
			cell = shortenMiddle(cell, widths[i])
		default:
			cell = shorten(cell, widths[i])
		}
		pad := widths[i] - uniseg.StringWidth(cell)
		if slices.Contains(t.right, i) {
			gap, pad = gap+pad, 0
		}
		if cell != "" {
			b.WriteString(strings.Repeat(" ", gap) + colours.paint(style(i), cell))
			gap = 0
		}
		gap += pad + 2
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

func (a *app) printTable(t *table) error {
	if !a.json {
		return t.print(a.out, a.width(), a.colours(a.out.w))
	}
	for _, r := range t.records {
		if err := a.record(r); err != nil {
			return err
		}
	}
	return nil
}

// shorten cuts a text to a number of columns.
func shorten(s string, columns int) string { return conversation.Shorten(s, columns) }

// shortenFront cuts a text to a number of columns, and keeps its end.
func shortenFront(s string, columns int) string {
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

// shortenMiddle cuts a name to a number of columns, and keeps its beginning and its end: names of one family share the
// beginning.
func shortenMiddle(s string, columns int) string {
	if uniseg.StringWidth(s) <= columns {
		return s
	}
	end := (columns - 1) / 2
	return shorten(s, columns-end) + strings.TrimPrefix(shortenFront(s, end+1), "…")
}

func humanSize(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func humanCount(n int64) string { return humanize.Comma(n) }

func humanTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return humanize.Time(t)
}

// exactTime is a local time to the minute, "" for none.
func exactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

// count is a number and the noun that it counts, as in "2 branches".
func count[N int | int64](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "ss"):
		noun += "es"
	default:
		noun += "s"
	}
	return humanize.Comma(int64(n)) + " " + noun
}

// remove removes a column of a table without styles.
func (t *table) remove(column int) {
	without := func(columns []int) (rest []int) {
		for _, c := range columns {
			if c < column {
				rest = append(rest, c)
			} else if c > column {
				rest = append(rest, c-1)
			}
		}
		return rest
	}
	t.head = slices.Delete(t.head, column, column+1)
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], column, column+1)
	}
	keep := map[int]int{}
	for c, width := range t.keep {
		for _, c := range without([]int{c}) {
			keep[c] = width
		}
	}
	t.right, t.shrink, t.keep = without(t.right), without(t.shrink), keep
	t.ends, t.names, t.drop = without(t.ends), without(t.names), without(t.drop)
}
