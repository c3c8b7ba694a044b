package assemble

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Parameters of BM25 for passages.
const (
	saturation    = 1.2
	lengthWeight  = 0.75
	averageLength = 60 // words of a passage
)

// score returns the BM25 score of a passage, and which terms it has.
func (b *builder) score(text string, weights map[string]float64) (score float64, why string) {
	counts := map[string]int{}
	n := 0
	b.cutter.Each(text, func(terms []string) {
		n++
		for _, t := range terms {
			if _, ok := weights[t]; ok {
				counts[t]++
			}
		}
	})
	found := make([]string, 0, len(counts))
	for t := range counts {
		found = append(found, t)
	}
	slices.SortFunc(found, func(x, y string) int { return cmp.Or(cmp.Compare(weights[y], weights[x]), strings.Compare(x, y)) })
	length := 1 - lengthWeight + lengthWeight*float64(n)/averageLength
	for _, t := range found {
		c := float64(counts[t])
		score += weights[t] * c * (saturation + 1) / (c + saturation*length)
	}
	if !b.r.Explain {
		return score, ""
	}
	if len(found) == 0 {
		return score, "beside messages with the words"
	}
	const most = 8
	why = "has " + strings.Join(found[:min(len(found), most)], ", ")
	if len(found) > most {
		why += fmt.Sprintf(" and %d more", len(found)-most)
	}
	return score, why
}
