package plain

import (
	"slices"
	"strings"
	"time"
)

// maxMonths bounds the months of the bars of months.
const maxMonths = 24

// Months draws a bar for each month up to the last one. It is empty if there are fewer than two months.
func Months(months map[string]int64) (bars, from, to string) {
	names := make([]string, 0, len(months))
	top := int64(0)
	for name := range months {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) < 2 {
		return "", "", ""
	}
	last, err := time.Parse("2006-01", names[len(names)-1])
	if err != nil {
		return "", "", ""
	}
	first := last
	for range maxMonths - 1 {
		if first.Format("2006-01") <= names[0] {
			break
		}
		first = first.AddDate(0, -1, 0)
	}
	for m := first; !m.After(last); m = m.AddDate(0, 1, 0) {
		top = max(top, months[m.Format("2006-01")])
	}
	var b strings.Builder
	levels := []rune("▁▂▃▄▅▆▇█")
	for m := first; !m.After(last); m = m.AddDate(0, 1, 0) {
		bar := '·'
		if n := months[m.Format("2006-01")]; n > 0 {
			bar = levels[int(float64(n)/float64(top)*float64(len(levels)-1))]
		}
		b.WriteRune(bar)
	}
	return b.String(), first.Format("2006-01"), last.Format("2006-01")
}
