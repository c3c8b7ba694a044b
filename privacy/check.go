package privacy

import (
	"fmt"
	"regexp"
	"strings"
)

// suspects are patterns that never occur in a clean text. The rules are not those of [Filter.Clean], so that a fault in one shows
// in the other.
var suspects = []struct {
	what string
	is   *regexp.Regexp
}{
	{"code", regexp.MustCompile("[`{}<>=|\\\\$#~^&@_;]\\w|\\w[`{}<>=|\\\\$#~^&@_]|\\w\\(")},
	{"a path or an address", regexp.MustCompile(`[/\\]|\w\.\w|\w:\w`)},
	{"an identifier", regexp.MustCompile(`[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|\w+-\w+-\w+`)},
	{"a number", regexp.MustCompile(`\d{4,}|\d[.,:-]\d`)},
	{"text of another script", regexp.MustCompile(`[^\x00-\x7f]`)},
	{"a control character", regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)},
}

var (
	anyWord     = regexp.MustCompile(`[A-Za-z']+`)
	placeInText = regexp.MustCompile(`\[(?:code|path|url|email|number|name)\]`)
)

// Check fails with [ErrPrivate] unless a text holds nothing but common words, small numbers, punctuation and
// placeholders.
func (f *Filter) Check(text string) error {
	rest := placeInText.ReplaceAllString(text, " ")
	for _, s := range suspects {
		if s.is.MatchString(rest) {
			return fmt.Errorf("%w: it looks like %s", ErrPrivate, s.what)
		}
	}
	for _, word := range anyWord.FindAllString(rest, -1) {
		word = strings.Trim(strings.ToLower(word), "'")
		if word != "" && (!words()[word] || f.names[word]) {
			return fmt.Errorf("%w: it contains an uncommon word", ErrPrivate)
		}
	}
	if f.phrases != nil && f.phrases.MatchString(text) {
		return fmt.Errorf("%w: it contains a name", ErrPrivate)
	}
	return nil
}

// Clean returns a text without anything private. It fails with [ErrPrivate] if the result does not pass [Filter.Check],
// and for a text above [MaxText].
func (f *Filter) Clean(text string) (string, error) {
	if len(text) > MaxText {
		return "", fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrPrivate, len(text), MaxText)
	}
	var b strings.Builder
	last := ""
	for _, line := range withoutCode(text) {
		line = f.cleanLine(line)
		if line == "" || line == placeCode && last == placeCode {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		last = line
	}
	cleaned := b.String()
	if f.phrases != nil {
		cleaned = f.phrases.ReplaceAllString(cleaned, placeName)
	}
	return cleaned, f.Check(cleaned)
}
