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
