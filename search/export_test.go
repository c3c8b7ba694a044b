package search

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/transcript"
)

// Words returns the words of a text.
func Words(text string) (all []string) {
	words(text, func(w word) { all = append(all, w.term) })
	return all
}

// AllTerms returns the terms of a text, each once: words, parts and stems.
func AllTerms(text string) map[string]bool {
	all, stems := map[string]bool{}, stemmer{}
	words(text, func(w word) {
		all[w.term] = true
		if w.parts {
			all[stems.stem(w.term)] = true
			parts(text[w.from:w.to], func(part string) {
				all[part], all[stems.stem(part)] = true, true
			})
		}
	})
	return all
}

// Stem returns the stem of a word.
func Stem(w string) string { return stemmer{}.stem(w) }

// Texts returns the texts of a message, with JSON in strings resolved.
func Texts(message []byte) (all []string) {
	_ = walk(message, isText, func(t text) bool {
		all = append(all, inner(t.value))
		return true
	})
	return all
}

// Mentions returns the files of a message without payloads, and the texts of its attachments.
func Mentions(message []byte) (all, texts []string) {
	w := fileWalk{text: func(_, content string) bool {
		texts = append(texts, content)
		return true
	}}
	_ = w.walk(message, "")
	for _, m := range w.mentions {
		all = append(all, fmt.Sprintf("%s %s %s %d %t %s", m.access, m.path, m.mediaType, m.size, m.isText, m.pointer))
	}
	return all, texts
}

// CutSnippet is cutSnippet for one mark.
func CutSnippet(value string, from, to int) (string, [][2]int) {
	return cutSnippet(value, []mark{{from, to, 0}})
}

// Required is required.
func Required(expression string) string { return string(required(expression)) }

// Question returns the words for which a question looks, nil for another query.
func Question(text string) []string {
	q, err := parse(text, false)
	if err != nil || !q.prune {
		return nil
	}
	return q.kept()
}

// Kept is Question for the words that are left when the frequent ones would make it too many messages.
func Kept(ctx context.Context, x *Index, q Query) []string {
	s := newSearch(x, &q)
	if _, err := s.find(ctx); err != nil || !s.parsed.prune {
		return nil
	}
	return s.parsed.kept()
}

func (q *query) kept() (words []string) {
	for _, t := range q.all[0].any {
		words = append(words, t.words...)
	}
	return words
}

// IsText reports whether a search looks at a string.
func IsText(value string) bool { return isText("", value) }

// CheckIndex verifies the structure of an index.
func CheckIndex(ctx context.Context, x *Index) error { return x.Check(ctx) }

// Forget is forget.
var Forget = forget

// Speech returns the strings of a message that are said, sorted.
func Speech(role string, body []byte) []string {
	_, said := speech(role, body, transcript.Parts(body))
	return slices.Sorted(maps.Keys(said))
}
