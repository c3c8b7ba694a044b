package plain

import (
	"strings"
	"testing"
)

func TestShortCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1.00k", 12_345: "12.3k",
		99_949: "99.9k", 99_950: "100k", 999_499: "999k", 999_500: "1.00M", 4_560_000: "4.56M",
		1_230_000_000: "1.23G", 1<<63 - 1: "9.22E",
	} {
		if got := Short(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for d, want := range map[float64]string{0: "0.00", 0.00123: "0.0012", 0.5: "0.50", 12.345: "12.35", 1234: "1234.00"} {
		if got := Dollars(d); got != want {
			t.Errorf("%g: %s, want %s", d, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, test := range []struct {
		part, whole int64
		want        string
	}{
		{0, 0, "0 %"}, {0, 5, "0 %"}, {5, 5, "100 %"}, {1, 2, "50 %"}, {1, 3, "33.3 %"}, {1, 100_000, "< 0.1 %"}, {99_999, 100_000, "> 99.9 %"},
	} {
		if got := Percent(test.part, test.whole); got != test.want {
			t.Errorf("%d of %d: %s, want %s", test.part, test.whole, got, test.want)
		}
	}
}

func TestMonths(t *testing.T) {
	tests := []struct {
		months map[string]int64
		want   string
	}{
		{nil, "  "},
		{map[string]int64{"2026-01": 5}, "  "},
		{map[string]int64{"2025-11": 800, "2026-01": 100, "2026-02": 400}, "2025-11 █·▁▄ 2026-02"},
		{map[string]int64{"2020-01": 1000, "2026-01": 1, "2026-02": 2}, "2024-03 " + strings.Repeat("·", 22) + "▄█ 2026-02"},
	}
	for _, test := range tests {
		bars, from, to := Months(test.months)
		if got := from + " " + bars + " " + to; got != test.want {
			t.Errorf("%v: %q, want %q", test.months, got, test.want)
		}
	}
}
