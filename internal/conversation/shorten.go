package conversation

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Shorten cuts a text to a number of columns.
func Shorten(s string, columns int) string {
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
