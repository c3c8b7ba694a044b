package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/rivo/uniseg"
)

// A Table aligns rows in columns. If the rows are wider than the terminal, it cuts the columns in Shrink to the widths in
// Keep, then leaves out the columns in Drop, and at last cuts to MinWidth.
type Table struct {
	Head    []string
	Right   []int       // columns aligned to the right
	Shrink  []int       // columns to cut, in this order
	Keep    map[int]int // widths that cut columns keep while others can be left out; MinWidth for those without
	Ends    []int       // columns of which a cut keeps the end
	Names   []int       // columns of names, which a cut shortens in the middle, and keeps distinct while others can be left out
	Bare    bool        // without head
	Drop    []int       // columns to leave out, in this order
	Records []any       // what the rows show, for programs
	rows    [][]string
	styles  map[[2]int]string // of cells, by row and column
}

// MinWidth is the least width that a cut column keeps.
const MinWidth = 11

// The widths that columns of titles and of names keep while lesser columns can be left out.
const (
	TitleWidth = 24
	NameWidth  = 16
)

// Add adds a row. Its record is nil if the row is only for people.
func (t *Table) Add(record any, cells ...string) {
	if record != nil {
		t.Records = append(t.Records, record)
	}
	for i := range cells {
		cells[i] = plain.OneLine(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Style colours a cell of the last row.
func (t *Table) Style(column int, style string) {
	if t.styles == nil {
		t.styles = map[[2]int]string{}
	}
	t.styles[[2]int{len(t.rows) - 1, column}] = style
}

// Print writes the table; a width of 0 is unlimited.
func (t *Table) Print(w io.Writer, width int, colours Painter) error {
	widths := t.widths(width)
	if !t.Bare {
		if err := t.row(w, t.Head, widths, func(int) string { return Bold }, colours); err != nil {
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
func (t *Table) widths(width int) []int {
	natural := t.naturalWidths()
	if width == 0 || sumOf(natural) <= width {
		return natural
	}
	least := make([]int, len(natural))
	for _, i := range t.Shrink {
		least[i] = max(t.Keep[i], MinWidth)
		if slices.Contains(t.Names, i) {
			least[i] = t.distinctWidth(i, least[i], natural[i])
		}
	}
	var widths []int
	for left := 0; ; left++ {
		widths = slices.Clone(natural)
		for _, i := range t.Drop[:left] {
			widths[i] = -1
		}
		t.cut(widths, width, least)
		if sumOf(widths) <= width || left == len(t.Drop) {
			break
		}
	}
	t.cut(widths, width, make([]int, len(widths)))
	return widths
}

func (t *Table) naturalWidths() []int {
	widths := make([]int, len(t.Head))
	for i := range t.Head {
		widths[i] = uniseg.StringWidth(t.Head[i])
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
func (t *Table) cut(widths []int, width int, least []int) {
	for _, i := range t.Shrink {
		if over := sumOf(widths) - width; over > 0 && widths[i] > 0 {
			widths[i] = min(widths[i], max(least[i], MinWidth, widths[i]-over))
		}
	}
}

// maxNames is the number of names that a table keeps distinct.
const maxNames = 200

// distinctWidth is the least width from least on at which the cells of a column are as distinct as at their natural
// width.
func (t *Table) distinctWidth(column, least, natural int) int {
	names := map[string]bool{}
	for _, row := range t.rows {
		if names[row[column]] = true; len(names) > maxNames {
			return least
		}
	}
	for width := least; width < natural; width++ {
		short := map[string]bool{}
		for name := range names {
			short[plain.ShortenMiddle(name, width)] = true
		}
		if len(short) == len(names) {
			return width
		}
	}
	return natural
}

func (t *Table) row(w io.Writer, cells []string, widths []int, style func(column int) string, colours Painter) error {
	var b strings.Builder
	gap := 0 // blanks before the next cell, so that no line ends with blanks
	for i, cell := range cells {
		if widths[i] < 0 {
			continue
		}
		switch {
		case slices.Contains(t.Ends, i):
			cell = plain.ShortenFront(cell, widths[i])
		case slices.Contains(t.Names, i):
			cell = plain.ShortenMiddle(cell, widths[i])
		default:
			cell = plain.Shorten(cell, widths[i])
		}
		pad := widths[i] - uniseg.StringWidth(cell)
		if slices.Contains(t.Right, i) {
			gap, pad = gap+pad, 0
		}
		if cell != "" {
			b.WriteString(strings.Repeat(" ", gap) + colours.Paint(style(i), cell))
			gap = 0
		}
		gap += pad + 2
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// Remove removes a column of a table without styles.
func (t *Table) Remove(column int) {
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
	t.Head = slices.Delete(t.Head, column, column+1)
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], column, column+1)
	}
	keep := map[int]int{}
	for c, width := range t.Keep {
		for _, c := range without([]int{c}) {
			keep[c] = width
		}
	}
	t.Right, t.Shrink, t.Keep = without(t.Right), without(t.Shrink), keep
	t.Ends, t.Names, t.Drop = without(t.Ends), without(t.Names), without(t.Drop)
}
