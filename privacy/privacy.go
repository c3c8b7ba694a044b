// Package privacy removes from texts what must not leave the machine: code, paths, addresses, keys, names and numbers.
//
// It works with a list of what may stay, not of what must go: about 8,000 common English words, small numbers and
// punctuation. A placeholder such as [name] or [path] takes the place of everything else, also of words that the caller
// knows as names of projects, folders and branches. A second look at the result, by other rules, fails closed.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package privacy

import (
	_ "embed"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

//go:embed words.txt
var wordList string

// words returns the words that may stay.
var words = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(wordList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for word := range strings.FieldsSeq(line) {
			all[word] = true
		}
	}
	return all
})

// ErrPrivate is the error of a text that may hold something private: it must not be sent.
var ErrPrivate = errors.New("the text may contain private data")

// MaxText bounds a text, in bytes.
const MaxText = 4 << 20

// Placeholders take the place of what is removed.
const (
	placeCode   = "[code]"
	placePath   = "[path]"
	placeURL    = "[url]"
	placeEmail  = "[email]"
	placeNumber = "[number]"
	placeName   = "[name]"
)

var placeholders = []string{placeCode, placePath, placeURL, placeEmail, placeNumber, placeName}

// Filter cleans texts. Several goroutines may use it.
type Filter struct {
	names   map[string]bool // words that are names
	phrases *regexp.Regexp  // names of several words; nil for none
}

// ordinary words stay even if a name has them among others.
var ordinary = regexp.MustCompile(`^(?:add|and|app|api|bug|build|change|check|code|data|dev|docs?|end|error|files?|first|fix|for|from|` +
	`get|home|in|issue|it|list|main|make|master|me|my|new|no|not|of|on|one|open|or|out|problem|projects?|run|script|set|src|show|start|` +
	`tests?|the|time|to|up|update|use|users?|version|with|work)$`)

// NewFilter returns a filter that also removes names: of projects, folders, branches, people. A name is compared by its
// words, so "release-notes", "ReleaseNotes" and "release notes" are one.
func NewFilter(names ...string) *Filter {
	f := &Filter{names: map[string]bool{}}
	var phrases []string
	for _, name := range names {
		parts := wordsOf(name)
		for _, part := range parts {
			if !ordinary.MatchString(part) {
				f.names[part] = true
			}
		}
		if len(parts) > 1 {
			f.names[strings.Join(parts, "")] = true
			phrases = append(phrases, strings.Join(parts, gap))
		}
	}
	if len(phrases) > 0 {
		slices.Sort(phrases)
		f.phrases = regexp.MustCompile(`(?i)\b(?:` + strings.Join(slices.Compact(phrases), "|") + `)\b`)
	}
	return f
}

// gap is what may stand between the words of a name.
const gap = `[^A-Za-z\[\]]{0,8}`

var (
	hump = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	part = regexp.MustCompile(`[a-z]+`)
)

// wordsOf returns the words of a name or a text, in lower case.
func wordsOf(text string) []string {
	return part.FindAllString(strings.ToLower(hump.ReplaceAllString(text, "$1 $2")), -1)
}

// cleanLine cleans a line, word by word.
func (f *Filter) cleanLine(line string) string {
	var out []string
	begins := true // of a sentence
	for token := range strings.FieldsSeq(line) {
		before, core, after := trim(token)
		kept := core
		if core != "" && !f.mayStay(core, begins) {
			kept = placeholderOf(core)
		}
		begins = (begins && core == "") || strings.ContainsAny(after, ".!?:") || strings.ContainsAny(before, `"(`) && core == ""
		token = before + kept + after
		if n := len(out); n > 0 && kept != core && strings.TrimRight(out[n-1], closing) == strings.TrimRight(before+kept, closing) {
			out = out[:n-1] // several in a row are one
		}
		out = append(out, token)
	}
	return strings.Join(out, " ")
}

// Punctuation that may stand before and after a word.
const (
	opening = `"'([*-–—`
	closing = `"')]*.,;:!?…-–—`
)

var quotes = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`)

// trim separates the punctuation around a word. A placeholder that the text has already is a word.
func trim(token string) (before, core, after string) {
	token = quotes.Replace(token)
	core = strings.TrimLeft(token, opening)
	before = token[:len(token)-len(core)]
	all := core
	core = strings.TrimRight(core, closing)
	after = all[len(core):]
	if strings.HasSuffix(before, "[") && strings.HasPrefix(after, "]") && isPlaceholder("["+core+"]") {
		return before[:len(before)-1], "[" + core + "]", after[1:]
	}
	return plain.Replace(before), core, plain.Replace(after)
}

// plain removes brackets and marks of Markdown.
var plain = strings.NewReplacer("[", "", "]", "", "*", "", "–", "-", "—", "-", "…", ".")

func isPlaceholder(word string) bool { return slices.Contains(placeholders, word) }

var (
	number  = regexp.MustCompile(`^\d{1,3}%?$`)
	letters = regexp.MustCompile(`^[A-Za-z]+(?:'[a-z]{1,2})?$`)
)

// mayStay reports whether a word is common: one or two words of the list with a hyphen between them, or a small number.
func (f *Filter) mayStay(core string, begins bool) bool {
	if number.MatchString(core) || isPlaceholder(core) {
		return true
	}
	parts := strings.Split(core, "-")
	for i, part := range parts {
		if len(parts) > 2 || !letters.MatchString(part) || !f.isCommon(part, begins && i == 0) {
			return false
		}
	}
	return true
}

// isCommon reports whether a word is in the list and no name. A capital letter within a sentence makes it a name.
func (f *Filter) isCommon(word string, begins bool) bool {
	lower := strings.ToLower(word)
	upper := strings.ToUpper(word) == word
	if !words()[lower] || f.names[lower] || f.names[strings.TrimSuffix(lower, "'s")] || f.names[strings.TrimSuffix(lower, "s")] {
		return false
	}
	return word == lower || upper || word == "I" || strings.HasPrefix(word, "I'") || begins && word[1:] == lower[1:]
}

// placeholderOf returns the placeholder for what is removed.
func placeholderOf(core string) string {
	switch {
	case strings.Contains(core, "://") || strings.HasPrefix(core, "www."):
		return placeURL
	case strings.Contains(core, "@"):
		return placeEmail
	case strings.ContainsAny(core, "`{}()<>=;$|&#"):
		return placeCode
	case strings.ContainsAny(core, `/\~`):
		return placePath
	case strings.IndexFunc(core, unicode.IsLetter) < 0:
		return placeNumber
	}
	return placeName
}
