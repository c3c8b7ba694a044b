package plain

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Size is a number of bytes, as in "1.5 KiB".
func Size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Number is a number with commas between thousands.
func Number(n int64) string { return humanize.Comma(n) }

// Ago is how long ago a time was, "" for none.
func Ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return humanize.Time(t)
}

// Minute is a local time to the minute, "" for none.
func Minute(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Count is a number and the noun that it counts, as in "2 branches".
func Count[N int | int64](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "ss"):
		noun += "es"
	default:
		noun += "s"
	}
	return humanize.Comma(int64(n)) + " " + noun
}

// Percent is a share in percent; only nothing is 0, and only everything 100.
func Percent(part, whole int64) string {
	share := 100 * float64(part) / float64(max(whole, 1))
	switch {
	case part > 0 && share < 0.1:
		return "< 0.1 %"
	case part < whole && share > 99.9:
		return "> 99.9 %"
	case share == math.Trunc(share):
		return fmt.Sprintf("%.0f %%", share)
	}
	return fmt.Sprintf("%.1f %%", share)
}

// Dollars is an amount to the cent, or to two digits below a dime.
func Dollars(d float64) string {
	if d > 0 && d < 0.1 {
		return strconv.FormatFloat(d, 'g', 2, 64)
	}
	return strconv.FormatFloat(d, 'f', 2, 64)
}

// Short is a number in three digits, such as 847, 12.3k and 4.56M.
func Short(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	f, unit := float64(n), 0
	for f >= 999.5 && unit < 6 {
		f /= 1000
		unit++
	}
	digits := 2
	switch {
	case f >= 99.95:
		digits = 0
	case f >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(f, 'f', digits, 64) + string("kMGTPE"[unit-1])
}
