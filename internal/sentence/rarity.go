package sentence

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// Rarity says how rare words are in a collection of sentences.
type Rarity struct {
	sentences int
	with      map[string]int // the number of sentences with a word
}

// NewRarity counts the words of sentences.
func NewRarity(sentences []string) *Rarity {
	r := &Rarity{len(sentences), map[string]int{}}
	for _, s := range sentences {
		for word := range distinct(s) {
			r.with[word]++
		}
	}
	return r
}

func distinct(s string) map[string]bool {
	words := map[string]bool{}
	for word := range Words(s) {
		words[word] = true
	}
	return words
}

// minWord is the length of the shortest word that says what a sentence is about.
const minWord = 4

// Of returns the rarity of a sentence, from 0 to 1: the mean of its words of four letters or more. The fewer
// sentences contain a word, the rarer it is.
func (r *Rarity) Of(s string) float64 {
	sum, n := 0.0, 0
	for word := range Words(s) {
		if utf8.RuneCountInString(word) >= minWord {
			sum += r.word(word)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func (r *Rarity) word(word string) float64 {
	if r.sentences < 2 {
		return 1
	}
	return 1 - math.Log(float64(max(r.with[word], 1)))/math.Log(float64(r.sentences))
}

// Topics returns up to n words that say what a sentence is about: the rarest of those that another sentence has too.
// want chooses among the words.
func (r *Rarity) Topics(s string, n int, want func(word string) bool) []string {
	var words []string
	for word := range distinct(s) {
		if r.with[word] > 1 && utf8.RuneCountInString(word) >= minWord && want(word) {
			words = append(words, word)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(r.with[a], r.with[b]), cmp.Compare(a, b)) })
	return words[:min(n, len(words))]
}
