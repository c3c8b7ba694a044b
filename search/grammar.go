package search

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
)

// A query is a list of conditions, all of which a message must meet. A condition is a list of terms of which it must
// have one (OR), or none (-).
type query struct {
	all   []condition
	words []condition // what a message has that has all words of a query in plain language; nil for another query
	any   []term      // words to look for if no message has the only term of the query
	prune bool        // all is any of the words, and may be too frequent ones
}

type condition struct {
	any []term
	not bool
}

// term is a word, a phrase or the beginning of a word.
type term struct {
	words  []string // as in the body of a document; several are a phrase
	exact  bool     // a word as it is written, not its stem
	prefix bool     // the last word may continue
	stem   bool     // the word is a stem already
}

// parse reads a query. stems is that of the index.
func parse(text string, phrase bool) (q query, err error) {
	if phrase {
		t, ok := newTerm(text, true, false)
		if !ok {
			return q, noWords(text)
		}
		q.all = []condition{{any: []term{t}}}
		return q, nil
	}
	plain, or, positive := true, false, false
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		var x token
		if x, rest, err = nextToken(rest); err != nil {
			return q, err
		}
		if x.isOr() {
			plain = false
			if or || len(q.all) == 0 || q.all[len(q.all)-1].not {
				return q, fmt.Errorf("%w: OR needs a word before and after it", ctxdir.ErrInvalid)
			}
			or = true
			continue
		}
		t, ok := newTerm(x.text, x.quoted, x.prefix)
		if !ok {
			continue // punctuation
		}
		plain = plain && !x.quoted && !x.prefix && !x.not
		switch {
		case or && x.not:
			return q, fmt.Errorf("%w: OR cannot be combined with -", ctxdir.ErrInvalid)
		case or:
			last := &q.all[len(q.all)-1]
			last.any = append(last.any, t)
		default:
			q.all = append(q.all, condition{any: []term{t}, not: x.not})
		}
		positive, or = positive || !x.not, false
	}
	switch {
	case or:
		return q, fmt.Errorf("%w: OR needs a word before and after it", ctxdir.ErrInvalid)
	case !positive:
		return q, noWords(text)
	}
	if plain {
		q.ask()
	}
	return q, nil
}

func noWords(text string) error {
	return fmt.Errorf("%w: the query %q contains no word to search for", ctxdir.ErrInvalid, text)
}

// ask turns a query in plain language into any of its words, without very common ones if it has others. A run of words
// with other characters between them, such as a path, counts as its words, and once more where they stand side by side.
func (q *query) ask() {
	var any, words []term
	frequent := !slices.ContainsFunc(q.all, func(c condition) bool { return len(c.any[0].words) > 1 || !common[c.any[0].words[0]] })
	for _, c := range q.all {
		t := c.any[0]
		if len(t.words) == 1 {
			if frequent || !common[t.words[0]] {
				any, words = append(any, t), append(words, t)
			}
			continue
		}
		if len(q.all) == 1 {
			any = append(any, t)
		}
		for i, w := range t.words {
			if !common[w] {
				one := term{words: []string{w}, exact: isSpaceless(first(w)), prefix: t.prefix && i == len(t.words)-1}
				any, words = append(any, one), append(words, one)
			}
		}
	}
	switch {
	case len(q.all) == 1 && len(any) > 1:
		q.any = any
	case len(any) > 1:
		for _, t := range words {
			q.words = append(q.words, condition{any: []term{t}})
		}
		fallthrough
	default:
		q.all, q.prune = []condition{{any: any}}, len(q.all) > 1
	}
}

// token is a word or a quotation of a query.
type token struct {
	text                string
	quoted, prefix, not bool
}

func (x *token) isOr() bool { return x.text == "OR" && !x.quoted && !x.not }

// nextToken reads a token at the beginning of a text.
func nextToken(text string) (x token, rest string, err error) {
	if rest, ok := strings.CutPrefix(text, "-"); ok && rest != "" && !unicode.IsSpace(first(rest)) {
		x.not, text = true, rest
	}
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		x.quoted = true
		if x.text, rest, ok = strings.Cut(quoted, `"`); !ok {
			return x, "", fmt.Errorf("%w: unclosed quotation mark in %q", ctxdir.ErrInvalid, text)
		}
		return x, rest, nil
	}
	end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
	if end < 0 {
		end = len(text)
	}
	x.text, rest = text[:end], text[end:]
	if word, ok := strings.CutSuffix(x.text, "*"); ok {
		x.text, x.prefix = word, true
	}
	return x, rest, nil
}

func first(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// newTerm cuts a word or a quotation into a term. ok is false if it has no word.
func newTerm(text string, exact, prefix bool) (t term, ok bool) {
	words(text, func(w word) { t.words = append(t.words, w.term) })
	if len(t.words) == 0 {
		return t, false
	}
	// The last character of a run without spaces stands alone only where the run ends, and the query may end within one.
	if last := t.words[len(t.words)-1]; isSpaceless(first(last)) {
		if len(t.words) > 1 && isPair(t.words[len(t.words)-2], last) {
			t.words = t.words[:len(t.words)-1]
		} else {
			prefix = true
		}
	}
	t.exact, t.prefix = exact, prefix
	return t, true
}

// isPair reports whether a word is a pair of characters that ends with the next word.
func isPair(pair, next string) bool {
	return isSpaceless(first(pair)) && strings.HasSuffix(pair, next) && pair != next
}

// match returns the term as an FTS5 expression.
func (t *term) match(stems stemmer) string {
	if t.stem && !t.prefix {
		return `"` + t.words[0] + `"`
	}
	if len(t.words) == 1 && !t.exact && !t.prefix {
		return `"` + stems.stem(t.words[0]) + `"`
	}
	expression := `"` + strings.Join(t.words, " ") + `"`
	if t.prefix {
		expression += " *"
	}
	if t.exact || len(t.words) > 1 {
		return "{said rest} : " + expression
	}
	return expression
}

// match returns an FTS5 expression for the messages that meet all conditions.
func match(all []condition, stems stemmer) string {
	var with, without []string
	for _, c := range all {
		var any []string
		for i := range c.any {
			any = append(any, c.any[i].match(stems))
		}
		if c.not {
			without = append(without, any...)
		} else {
			with = append(with, "("+strings.Join(any, " OR ")+")")
		}
	}
	expression := strings.Join(with, " AND ")
	if len(without) > 0 {
		expression = "(" + expression + ") NOT (" + strings.Join(without, " OR ") + ")"
	}
	return expression
}

// common are English words that a query in plain language does not look for if it has others.
var common = func() map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(`a about after again all also am an and any are as at be because been before being but by can
could did do does doing for from get got had has have having he her here him his how i if in into is it its just let like me more most
my no not now of on once only or other our out over own please same she should so some such than that the their them then there these
they this those to too under up us was we were what when where which while who whom why will with would you your`) {
		all[w] = true
	}
	return all
}()
