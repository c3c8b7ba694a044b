// Package redact finds secrets and personal details in texts, and replaces them: keys and tokens, e-mail addresses, home
// folders, private host names, long base64, and words of the caller's own.
//
//	r, err := redact.New(redact.Options{Kinds: redact.Kinds, Words: []string{"Project Heron"}})
//	safe := r.Text(text)  // or r.JSON(body), which stays valid JSON
//
// Only this package makes a [Text], so a function that takes a Text cannot be given one that the patterns have not seen.
// Patterns find keys. They cannot know that a sentence is a secret.
//
// A search takes time in proportion to the length of the text, and memory in proportion to what it finds. The package
// never changes what it does not replace.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package redact

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is a kind of text that is replaced.
type Kind string

// The kinds. A finding of two kinds has the first one of this list.
const (
	Key    Kind = "key"    // keys of APIs, private keys, passwords
	Token  Kind = "token"  // access tokens
	Mail   Kind = "mail"   // e-mail addresses
	Path   Kind = "path"   // home folders, which have the name of a person
	Host   Kind = "host"   // private host names and addresses
	Base64 Kind = "base64" // long base64, such as images
	Word   Kind = "word"   // words of the caller
)

// Kinds are all kinds.
var Kinds = []Kind{Key, Token, Mail, Path, Host, Base64, Word}

// Replacement is what stands for a finding, such as [key].
func (k Kind) Replacement() string { return "[" + string(k) + "]" }

// Finding is a part of a text, in bytes.
type Finding struct {
	Kind       Kind
	Start, End int
	Rule       string // which pattern found it; for tokens and keys, a rule of gitleaks where it has one
}

const (
	// MaxWords and MaxWord bound the words of a caller: their number, and the length of each in bytes.
	MaxWords = 100
	MaxWord  = 200
)

// Options say what to find.
type Options struct {
	Kinds []Kind
	// Words are found wherever they are, also inside longer words, in capital and small letters.
	Words []string
	// Found is called for each finding before it is replaced, with the text around it; may be nil. For JSON, the text is a
	// string in it, without escapes.
	Found func(text string, f Finding)
}

// Redactor finds and replaces. It can be used by several goroutines if [Options].Found can. A nil Redactor replaces
// nothing.
type Redactor struct {
	kinds map[Kind]bool
	words *regexp.Regexp
	found func(text string, f Finding)
}

// ErrOptions reports options that cannot be used.
var ErrOptions = errors.New("redact: invalid options")

// New returns a Redactor. It fails with [ErrOptions].
func New(o Options) (*Redactor, error) {
	r := &Redactor{kinds: map[Kind]bool{}, found: o.Found}
	for _, k := range o.Kinds {
		if !slices.Contains(Kinds, k) {
			return nil, fmt.Errorf("%w: unknown kind %q", ErrOptions, k)
		}
		r.kinds[k] = true
	}
	if len(o.Words) > MaxWords {
		return nil, fmt.Errorf("%w: the list exceeds the limit of %d words", ErrOptions, MaxWords)
	}
	var words []string
	for _, w := range o.Words {
		if w = strings.TrimSpace(w); w == "" || len(w) > MaxWord {
			return nil, fmt.Errorf("%w: a word must have 1 to %d bytes", ErrOptions, MaxWord)
		}
		words = append(words, regexp.QuoteMeta(w))
	}
	// Of two words that begin alike, the longer one is replaced.
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	if len(words) > 0 {
		words, err := regexp.Compile("(?i)" + strings.Join(words, "|"))
		if err != nil {
			return nil, fmt.Errorf("%w: a word is not valid UTF-8", ErrOptions)
		}
		r.words = words
	}
	return r, nil
}

// Quiet is the same Redactor without [Options].Found, for texts that are made of redacted ones.
func (r *Redactor) Quiet() *Redactor {
	if r == nil {
		return nil
	}
	return &Redactor{kinds: r.kinds, words: r.words}
}

// Replaces reports whether a kind is replaced.
func (r *Redactor) Replaces(k Kind) bool {
	return r != nil && (r.kinds[k] || k == Word && r.words != nil)
}

// Text is a text in which a Redactor has replaced what it found.
type Text struct{ s string }

// String is the text.
func (t Text) String() string { return t.s }

// Text replaces what is found in a text.
func (r *Redactor) Text(text string) Text {
	found := r.Find(text)
	if len(found) == 0 {
		return Text{text}
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		r.report(text, f)
		b.WriteString(text[at:f.Start] + f.Kind.Replacement())
		at = f.End
	}
	b.WriteString(text[at:])
	return Text{b.String()}
}

func (r *Redactor) report(text string, f Finding) {
	if r.found != nil {
		r.found(text, f)
	}
}

var everything = func() *Redactor {
	r, err := New(Options{Kinds: Kinds})
	if err != nil {
		panic(err) // the options are constants
	}
	return r
}()

// Find returns what all patterns find in a text, in order and without overlaps.
func Find(text string) []Finding { return everything.Find(text) }

// Find returns what is found in a text, in order and without overlaps.
func (r *Redactor) Find(text string) []Finding {
	if r == nil {
		return nil
	}
	s := search{text: text, kinds: r.kinds}
	s.run()
	if r.words != nil {
		for _, at := range r.words.FindAllStringIndex(text, -1) {
			s.found = append(s.found, Finding{Word, at[0], at[1], "word"})
		}
	}
	return merged(text, s.found)
}

// merged sorts findings, and joins those that overlap.
func merged(text string, found []Finding) (all []Finding) {
	for i := range found {
		found[i].Start = beforeEscape(text, found[i].Start)
		if end := beforeEscape(text, found[i].End); end > found[i].Start { // a word may be a backslash
			found[i].End = end
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(rank(a.Kind), rank(b.Kind)))
	})
	for _, f := range found {
		if last := len(all) - 1; last >= 0 && f.Start < all[last].End {
			all[last].End = max(all[last].End, f.End)
			if rank(f.Kind) < rank(all[last].Kind) {
				all[last].Kind, all[last].Rule = f.Kind, f.Rule
			}
			continue
		}
		all = append(all, f)
	}
	return all
}

func rank(k Kind) int { return slices.Index(Kinds, k) }

// beforeEscape moves the beginning of a finding before the backslash of an escape that it would cut: a text may be JSON
// itself, and "\nbob@…" must not become "\[mail]".
func beforeEscape(text string, at int) int {
	slashes := 0
	for slashes < at && text[at-1-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 1 {
		return at - 1
	}
	return at
}
