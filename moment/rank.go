package moment

import (
	"cmp"
	"slices"
)

// Rank sorts moments: the most relevant first, of equal ones the newest. It returns them.
func Rank(moments []Moment) []Moment {
	slices.SortStableFunc(moments, func(a, b Moment) int {
		return cmp.Or(cmp.Compare(b.Relevance, a.Relevance), b.At.Compare(a.At))
	})
	return moments
}

// Fit returns the first moments, in order, that fit in a number of tokens; it passes over one that is too long. count
// returns the number of tokens of a text.
func Fit(moments []Moment, maxTokens int, count func(text string) int) (fitting []Moment) {
	for _, m := range moments {
		if n := count(m.Content); n <= maxTokens {
			fitting = append(fitting, m)
			maxTokens -= n
		}
	}
	return fitting
}
