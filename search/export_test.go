package search

import "context"

// Words returns the words of a text.
func Words(text string) (all []string) {
	words(text, func(w word) { all = append(all, w.term) })
	return all
}

// Terms returns the terms of a text, each once: words, parts and stems.
func Terms(text string) map[string]bool {
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
	_ = eachText(message, func(t text) bool {
		all = append(all, inner(t.value))
		return true
	})
	return all
}

// Paths returns the paths of files in a message.
func Paths(message []byte) (all []string) {
	_ = eachText(message, func(t text) bool {
		pathsIn(t, func(path string) { all = append(all, path) })
		return true
	})
	return all
}

// CutSnippet is cutSnippet for one mark.
func CutSnippet(value string, from, to int) (string, [][2]int) {
	return cutSnippet(value, []mark{{from, to, 0}})
}

// Required is required.
func Required(expression string) string { return string(required(expression)) }

// Question returns the words for which a question looks, nil for another query.
func Question(text string) (all []string) {
	q, err := parse(text, false)
	if err == nil && q.question {
		for _, t := range q.all[0].any {
			all = append(all, t.words...)
		}
	}
	return all
}

// CheckIndex verifies the structure of an index.
func CheckIndex(ctx context.Context, x *Index) error { return x.Check(ctx) }
