package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
)

// maxWord is the length of a word, in bytes, above which it has no parts and no stem: data, as a rule.
const maxWord = 64

// word is a word of a text: a run of letters, digits, marks and underscores, or two neighbouring characters of a script
// without spaces.
type word struct {
	term     string // in lower case
	from, to int    // bytes of the text
	parts    bool   // it may have parts or a stem
}

// words calls yield for each word of a text in order. A run of n characters of a script without spaces yields its n-1
// pairs, and then its last character alone: so a phrase of pairs finds every substring of the run.
func words(text string, yield func(w word)) {
	for at := 0; at < len(text); {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[at:])
		}
		switch {
		case isSpaceless(r):
			at = pairs(text, at, yield)
		case isWordRune(r):
			from := at
			at = wordEnd(text, at)
			w := text[from:at]
			yield(word{term: lower(w), from: from, to: at, parts: len(w) <= maxWord})
		default:
			at += size
		}
	}
}

func wordEnd(text string, at int) int {
	for at < len(text) {
		c := text[at]
		if c < utf8.RuneSelf {
			if !isWordByte(c) {
				break
			}
			at++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if !isWordRune(r) || isSpaceless(r) {
			break
		}
		at += size
	}
	return at
}

// pairs yields the words of a run without spaces, and returns where it ends.
func pairs(text string, at int, yield func(w word)) int {
	for {
		_, size := utf8.DecodeRuneInString(text[at:])
		next, width := utf8.DecodeRuneInString(text[at+size:])
		if !isSpaceless(next) {
			yield(word{term: text[at : at+size], from: at, to: at + size})
			return at + size
		}
		yield(word{term: text[at : at+size+width], from: at, to: at + size + width})
		at += size
	}
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return isWordByte(byte(r))
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// isSpaceless reports whether a character belongs to a script that is written without spaces between words.
func isSpaceless(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}

// parts calls yield for each part of an identifier, in lower case: ParseHTTPHeader2 has parse, http, header and 2, and
// snake_case has snake and case. A word that is not an identifier has none.
func parts(identifier string, yield func(part string)) {
	cuts := false
	for i := 1; i < len(identifier); i++ {
		if identifier[i] == '_' || isUpper(identifier[i]) && isCut(identifier, i) {
			cuts = true
			break
		}
	}
	if !cuts && (identifier == "" || identifier[0] != '_') {
		return
	}
	from := 0
	for i := 1; i <= len(identifier); i++ {
		if i < len(identifier) && !isCut(identifier, i) {
			continue
		}
		if part := strings.Trim(identifier[from:i], "_"); part != "" && part != identifier {
			yield(lower(part))
		}
		from = i
	}
}

// isCut reports whether a part of an identifier begins at a byte.
func isCut(s string, i int) bool {
	was, is := s[i-1], s[i]
	switch {
	case was == '_' || is == '_':
		return true
	case isUpper(is):
		return isLower(was) || isDigit(was) || isUpper(was) && i+1 < len(s) && isLower(s[i+1])
	case isDigit(is):
		return !isDigit(was)
	}
	return isDigit(was)
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// stemmer cuts words to their stems, and remembers them.
type stemmer map[string]string

// maxStems bounds the stems that a stemmer remembers.
const maxStems = 50_000

// stem returns the stem of a word in lower case. Only a word of English letters has another stem than itself.
func (s stemmer) stem(w string) string {
	if len(w) < 3 || len(w) > maxWord {
		return w
	}
	if stem, ok := s[w]; ok {
		return stem
	}
	stem := w
	if strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
		stem = english.Stem(w, true)
	}
	if len(s) >= maxStems {
		clear(s)
	}
	s[strings.Clone(w)] = stem
	return stem
}

// cutter cuts texts into the terms of one message.
type cutter struct {
	stems      stemmer
	said, rest terms // of what people and the model say to each other, and of everything else
}

// terms are those of the texts of a message.
type terms struct {
	words []byte          // every word in order
	stems []byte          // stems and parts that are not among words, each once
	seen  map[string]bool // terms in stems
}

func newCutter() *cutter {
	return &cutter{stems: stemmer{}, said: terms{seen: map[string]bool{}}, rest: terms{seen: map[string]bool{}}}
}

func (c *cutter) reset() {
	for _, t := range []*terms{&c.said, &c.rest} {
		t.words, t.stems = t.words[:0], t.stems[:0]
		clear(t.seen)
	}
}

// add adds a text to the said ones, or to the rest. A break between texts keeps phrases within one text.
func (c *cutter) add(text string, said bool) {
	t := &c.rest
	if said {
		t = &c.said
	}
	if len(t.words) > 0 {
		t.words = append(t.words, textBreak+" "...)
	}
	words(text, func(w word) {
		t.words = append(append(t.words, w.term...), ' ')
		if !w.parts {
			return
		}
		t.put(w.term, c.stems.stem(w.term))
		parts(text[w.from:w.to], func(part string) {
			t.put("", part)
			t.put(part, c.stems.stem(part))
		})
	})
}

// put adds a term unless it is the one that it comes from.
func (t *terms) put(of, term string) {
	if term != of {
		t.seen[strings.Clone(term)] = true
		t.stems = append(append(t.stems, term...), ' ')
	}
}

// textBreak stands between two texts of a message: no word has this character.
const textBreak = "~"
