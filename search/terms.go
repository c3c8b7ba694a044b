package search

// TermCutter cuts texts into terms as the index does. It remembers stems, and is for one goroutine.
type TermCutter struct {
	stems stemmer
}

// NewTermCutter returns a new cutter of terms.
func NewTermCutter() *TermCutter { return &TermCutter{stemmer{}} }

// Query returns the terms for which a query in plain language looks, each once, in order: the stems of its words without
// very common English ones. If it has no other words, it returns those.
func (t *TermCutter) Query(text string) (all []string) {
	var frequent []string
	seen := map[string]bool{}
	last := word{from: -1}
	words(text, func(w word) {
		term, inPair := t.stems.stem(w.term), last.to == w.to && last.from >= 0
		if last = w; seen[term] || inPair {
			return
		}
		seen[term] = true
		if common[w.term] {
			frequent = append(frequent, term)
		} else {
			all = append(all, term)
		}
	})
	if len(all) == 0 {
		return frequent
	}
	return all
}

// Each calls yield for each word of a text in order, with the terms by which a query finds it.
func (t *TermCutter) Each(text string, yield func(terms []string)) {
	var terms []string
	words(text, func(w word) {
		terms = append(terms[:0], w.term)
		if w.parts {
			terms = append(terms[:0], t.stems.stem(w.term))
			parts(text[w.from:w.to], func(part string) { terms = append(terms, t.stems.stem(part)) })
		}
		yield(terms)
	})
}
