package moment

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/sentence"
)

// Local extracts moments without a model. It takes sentences word by word, and so adds nothing to what was said. It
// knows English only: in other languages it finds little, and nothing wrong.
type Local struct{}

// maxTopics bounds the tags that Local gives, and maxBackground the sentence before, in bytes.
const (
	maxTopics     = 3
	maxBackground = 240
)

// Moments returns what the turns of a conversation decide, fix or lay down.
func (Local) Moments(ctx context.Context, texts []Text) ([]Moment, error) {
	return candidates(texts, enough), ctx.Err()
}

// maxSigns is the number of signs of the strongest moments.
const maxSigns = 5

// candidates returns what has a number of signs or more.
func candidates(texts []Text, enough int) (found []Moment) {
	all := turns(texts)
	rarity := sentence.NewRarity(sentencesOf(all))
	var seen []map[string]bool
	for i := range all {
		for _, f := range all[i].finds() {
			words := distinct(f.Content)
			if f.signs < enough || slices.ContainsFunc(seen, func(other map[string]bool) bool { return repeats(words, other) }) {
				continue
			}
			seen = append(seen, words)
			m := f.Moment
			m.References, m.Tags = references(m.Content), rarity.Topics(m.Content, maxTopics, isTopic)
			m.Relevance = relevance(float64(min(f.signs, maxSigns))/maxSigns, rarity.Of(m.Content))
			if len(m.Background) > maxBackground {
				m.Background = ""
			}
			found = append(found, m)
		}
	}
	return found
}

// repeats reports whether the shorter of two texts has most of its words from the other: it says the same again.
func repeats(a, b map[string]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	shared := 0
	for word := range a {
		if b[word] {
			shared++
		}
	}
	return shared*4 >= len(a)*3
}

func sentencesOf(turns []turn) (all []string) {
	for i := range turns {
		all = append(all, sentence.Split(turns[i].Text.Text)...)
	}
	return all
}

// relevance combines the strength of signs with the rarity of words, in hundredths.
func relevance(strength, rarity float64) float64 {
	return float64(int(strength*(0.5+rarity/2)*100+0.5)) / 100
}

// isTopic reports whether a word can be a tag: a word of letters that is about a thing.
func isTopic(word string) bool {
	n := utf8.RuneCountInString(word)
	return n >= 5 && n <= 24 && !strings.ContainsFunc(word, notLetter) && !common.MatchString(word)
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

var common = regexp.MustCompile(`^(?:` +
	`about|above|after|again|against|already|always|another|anything|around|because|before|behind|being|below|between|` +
	`both|cannot|could|doing|during|either|every|everything|first|going|having|however|instead|itself|little|might|` +
	`needs?|never|nothing|often|other|others|rather|really|second|several|should|since|something|still|their|there|` +
	`these|thing|things|those|three|through|together|under|until|using|where|whether|which|while|whole|whose|without|` +
	`would|works?|yours?` +
	`)$`)

// file is the path of a file in a text, with the line that may follow it.
var file = regexp.MustCompile("(?:^|[\\s(\"'`])((?:[\\w.-]+/)*[\\w-][\\w.-]*\\.[a-zA-Z]\\w{0,4})(?::(\\d{1,6}))?(?:[\\s)\"'`.,;:!?]|$)")

// endings are those of files that conversations are about. A name such as "e.g" or "example.com" has none of them.
const endings = " go py js ts jsx tsx mjs rs c h cc cpp hpp java kt swift rb php cs sh bash ps1 sql md txt json jsonl yaml yml toml xml " +
	"html css scss vue svelte proto lock mod sum cfg conf ini env lua ex exs erl hs ml scala clj r ipynb tf "

// maxReferences bounds the references of a moment.
const maxReferences = 8

// references returns the files that a text names by relative paths.
func references(s string) (all []Reference) {
	for _, match := range file.FindAllStringSubmatch(s, -1) {
		name := match[1]
		ending := " " + strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".") + " "
		if !strings.Contains(endings, ending) || strings.Contains(name, "..") || len(all) == maxReferences {
			continue
		}
		r := Reference{File: name}
		if line, err := strconv.Atoi(match[2]); err == nil && line > 0 {
			r.Lines = [2]int{line, line}
		}
		all = append(all, r)
	}
	return all
}
