package compress

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
)

// Local summarises with the sentences of the texts themselves, word by word. It needs no model and no network, and the
// same texts give the same summary.
type Local struct {
	// Tokens counts the tokens of a text; nil for an estimate that is rather too high.
	Tokens func(text string) int
}

// Estimate is a number of tokens that a text hardly exceeds: one for three bytes.
func Estimate(text string) int { return (len(text) + 2) / 3 }

// candidate is a sentence that a summary may have.
type candidate struct {
	text   string
	order  int
	tokens int
	score  float64
}

// Summary returns those sentences that have most in common with the others, in the order of the texts, one a line.
func (l Local) Summary(ctx context.Context, texts []string, maxTokens int) (string, error) {
	count := l.Tokens
	if count == nil {
		count = Estimate
	}
	all := candidates(texts)
	for i := range all {
		all[i].tokens = count(all[i].text + "\n")
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	var chosen []candidate
	left := maxTokens
	for _, s := range all {
		if s.tokens <= left {
			chosen, left = append(chosen, s), left-s.tokens
		}
	}
	slices.SortFunc(chosen, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	for {
		text := join(chosen)
		if len(chosen) == 0 || count(text) <= maxTokens {
			return text, ctx.Err()
		}
		worst := slices.MinFunc(chosen, func(a, b candidate) int { return cmp.Compare(a.score, b.score) })
		chosen = slices.DeleteFunc(chosen, func(s candidate) bool { return s.order == worst.order })
	}
}

func join(chosen []candidate) string {
	lines := make([]string, len(chosen))
	for i, s := range chosen {
		lines[i] = s.text
	}
	return strings.Join(lines, "\n")
}

// candidates returns the distinct sentences of texts with their scores: the mean weight of their words. A word weighs
// more the more sentences have it, but words that nearly all have say nothing. The first sentence of a text counts
// more.
func candidates(texts []string) []candidate {
	var all []candidate
	seen := map[string]bool{}
	leads := map[int]bool{}
	for _, text := range texts {
		for i, s := range sentence.Split(text) {
			if !seen[s] && !isData(s) {
				seen[s] = true
				leads[len(all)] = i == 0
				all = append(all, candidate{text: s, order: len(all)})
			}
		}
	}
	with := map[string]int{}
	for _, s := range all {
		for word := range distinct(s.text) {
			with[word]++
		}
	}
	for i := range all {
		words := distinct(all[i].text)
		sum := 0.0
		for word := range words {
			share := float64(with[word]) / float64(len(all))
			if with[word] > 1 && share < 0.3 {
				sum += math.Log(float64(with[word]))
			}
		}
		all[i].score = sum / math.Sqrt(float64(max(len(words), 1)))
		if leads[i] {
			all[i].score *= 1.3
		}
	}
	return all
}

// isData reports whether more than a third of a sentence is paths, identifiers or code.
func isData(s string) bool {
	words := strings.Fields(s)
	data := 0
	for _, w := range words {
		if strings.ContainsAny(w, `/\_{}=<>|`) {
			data++
		}
	}
	return 3*data > len(words)
}

// distinct returns the words of a sentence that have four letters or more.
func distinct(text string) map[string]bool {
	words := map[string]bool{}
	for word := range sentence.Words(text) {
		if len(word) >= 4 {
			words[word] = true
		}
	}
	return words
}
