package term

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	tests := []struct {
		name  string
		width int
		want  string
	}{
		{"as wide as it is", 0, `
ID  TITLE                  N
1   a title of some text   5
22  日本語の題            10
3
`},
		{"narrow", 24, `
ID  TITLE              N
1   a title of some…   5
22  日本語の題        10
3
`},
		{"as narrow as a column gets", 19, `
ID  TITLE         N
1   a title of…   5
22  日本語の題   10
3
`},
		{"a column less", 17, `
ID  TITLE
1   a title of s…
22  日本語の題
3
`},
		{"never too narrow", 5, `
ID  TITLE
1   a title of…
22  日本語の題
3
`},
	}
	for _, test := range tests {
		tab := Table{Head: []string{"ID", "TITLE", "N"}, Right: []int{2}, Shrink: []int{1}, Drop: []int{2}}
		tab.Add(nil, "1", "a title\nof some text", "5")
		tab.Add(nil, "22", "日本語の題", "10")
		tab.Add(nil, "3", "", "")
		var b strings.Builder
		if err := tab.Print(&b, test.width, false); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + b.String(); got != test.want {
			t.Errorf("%s:%s\nwanted%s", test.name, got, test.want)
		}
	}
}

// TestTableGivesWidthToNames: lesser columns go before a title is short, and before two names look alike.
func TestTableGivesWidthToNames(t *testing.T) {
	models := []string{"claude-opus-4-5-20251101", "claude-opus-4-6-20251101", "claude-haiku-4-5-20251001"}
	tab := Table{
		Head: []string{"TITLE", "MODEL", "SIZE", "UPDATED"}, Shrink: []int{0, 1}, Keep: map[int]int{0: 20, 1: 14},
		Names: []int{1}, Drop: []int{3, 2, 1},
	}
	for _, model := range models {
		tab.Add(nil, "A title of some length, and more", model, "12.3 KiB", "2026-05-04 10:00")
	}
	tests := []struct {
		width int
		want  string
	}{
		{100, `
TITLE                             MODEL                      SIZE      UPDATED
A title of some length, and more  claude-opus-4-5-20251101   12.3 KiB  2026-05-04 10:00
A title of some length, and more  claude-opus-4-6-20251101   12.3 KiB  2026-05-04 10:00
A title of some length, and more  claude-haiku-4-5-20251001  12.3 KiB  2026-05-04 10:00
`},
		{60, `
TITLE                    MODEL                      SIZE
A title of some length…  claude-opus-4-5-20251101   12.3 KiB
A title of some length…  claude-opus-4-6-20251101   12.3 KiB
A title of some length…  claude-haiku-4-5-20251001  12.3 KiB
`},
		{53, `
TITLE                 MODEL                  SIZE
A title of some len…  claude-opu…5-20251101  12.3 KiB
A title of some len…  claude-opu…6-20251101  12.3 KiB
A title of some len…  claude-hai…5-20251001  12.3 KiB
`},
		{46, `
TITLE                 MODEL
A title of some len…  claude-opus-4-5-20251101
A title of some len…  claude-opus-4-6-20251101
A title of some len…  claude-haiku…-5-20251001
`},
		{30, `
TITLE
A title of some length, and m…
A title of some length, and m…
A title of some length, and m…
`},
	}
	for _, test := range tests {
		var b strings.Builder
		if err := tab.Print(&b, test.width, false); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + b.String(); got != test.want {
			t.Errorf("%d columns:%s\nwanted%s", test.width, got, test.want)
		}
	}
}
