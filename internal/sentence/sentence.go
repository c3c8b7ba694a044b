// Package sentence cuts prose into sentences and words, and says how rare words are among them. It knows no language:
// it looks at punctuation, lines and Markdown only.
package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLength bounds a sentence, in bytes: a longer one is data.
const maxLength = 600

// Split returns the sentences of a text in Markdown, in order. It leaves out code blocks, quotations, tables and
// headings, and the marks of lists. A line that begins an item of a list begins a sentence.
func Split(text string) []string {
	var all []string
	var paragraph strings.Builder
	flush := func() {
		all = append(all, cut(paragraph.String())...)
		paragraph.Reset()
	}
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if mark := fenceOf(trimmed); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			flush()
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		indented := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ")
		item, isItem := cutMark(trimmed)
		switch {
		case trimmed == "", trimmed[0] == '>', trimmed[0] == '|', trimmed[0] == '#', trimmed[0] == '<', indented && !isItem:
			flush()
		case isItem:
			flush()
			paragraph.WriteString(item)
		default:
			if paragraph.Len() > 0 {
				paragraph.WriteByte(' ')
			}
			paragraph.WriteString(trimmed)
		}
	}
	flush()
	return all
}

// fenceOf returns the mark of a line that begins or ends a code block.
func fenceOf(line string) string {
	for _, mark := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, mark) {
			return line[:len(line)-len(strings.TrimLeft(line, mark[:1]))]
		}
	}
	return ""
}

// cutMark cuts the mark of an item of a list from a line.
func cutMark(line string) (rest string, isItem bool) {
	for _, mark := range []string{"- ", "* ", "+ ", "• "} {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			return strings.TrimSpace(rest), true
		}
	}
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 && digits <= 3 && len(line) > digits+1 && (line[digits] == '.' || line[digits] == ')') && line[digits+1] == ' ' {
		return strings.TrimSpace(line[digits+1:]), true
	}
	return line, false
}

// cut cuts a paragraph into sentences. A full stop ends one before a space and no small letter.
func cut(text string) (all []string) {
	add := func(s string) {
		if s = strings.TrimSpace(strings.ReplaceAll(s, "**", "")); len(s) <= maxLength && Count(s) > 0 {
			all = append(all, s)
		}
	}
	from := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		switch {
		case strings.ContainsRune("。！？", r):
		case !strings.ContainsRune(".!?", r) || r == utf8.RuneError:
			continue
		default:
			rest := strings.TrimLeft(text[end:], `"')*_`+"`")
			next, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " "))
			if rest != "" && rest[0] != ' ' || unicode.IsLower(next) || r == '.' && abbreviates(text[from:i]) {
				continue
			}
			end = len(text) - len(rest)
		}
		add(text[from:end])
		from = end
	}
	add(text[from:])
	return all
}

// abbreviates reports whether a full stop after a text belongs to an abbreviation.
func abbreviates(text string) bool {
	last := text[strings.LastIndexAny(text, " (")+1:]
	switch strings.ToLower(last) {
	case "e.g", "i.e", "etc", "vs", "cf", "approx", "no", "dr", "mr", "mrs", "ms", "st":
		return true
	}
	return len(last) == 1 && unicode.IsUpper(rune(last[0])) && last != "I"
}

// Words yields the words of a text in lower case.
func Words(text string) func(yield func(word string) bool) {
	return func(yield func(word string) bool) {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
			if word = strings.ToLower(strings.Trim(word, "'")); word != "" && !yield(word) {
				return
			}
		}
	}
}

// Count returns the number of words in a text.
func Count(text string) (n int) {
	for range Words(text) {
		n++
	}
	return n
}
