package privacy

import (
	"regexp"
	"strings"
)

// withoutCode returns the lines of a text, with a placeholder for each that is code.
func withoutCode(text string) (lines []string) {
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch mark := fenceOf(trimmed); {
		case fence == "" && mark != "":
			fence = mark
			lines = append(lines, placeCode)
		case fence != "":
			if strings.HasPrefix(mark, fence) {
				fence = ""
			}
		default:
			rest := inline.ReplaceAllString(mark0.ReplaceAllString(trimmed, ""), placeCode)
			if rest = address.ReplaceAllString(rest, placeURL); isCode(line, rest) {
				rest = placeCode
			}
			lines = append(lines, rest)
		}
	}
	return lines
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

var (
	address = regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://[^\s)\]>"']+`)
	inline  = regexp.MustCompile("`[^`]*`|``.*?``")
	// mark0 is the mark of a heading, a quotation or an item of a list.
	mark0 = regexp.MustCompile(`^(?:#{1,6}\s+|>\s*|[-*+•]\s+|\d{1,3}[.)]\s+)+`)
	// statement is a line that only code has: by its end, its beginning, or an operator.
	statement = regexp.MustCompile(`[{};]$|^[})\]<@$%]|\):$|\w\(.*\)|[^=!<>]=[^=]|[=!<>]=|:=|=>|->|::|&&|\|\||</|/>|` +
		`^\s*(?:func|def|class|import|from|package|const|let|` +
		`var|return|if|else|elif|for|while|switch|case|try|catch|except|public|private|static|struct|type|use|fn|impl|interface|export|` +
		`#include|select|insert|update|delete|create|alter|sudo|cd|git|npm|go|pip|cargo|make|docker|curl|echo|cat|ls)\b[^.!?]*$`)
	// diffOrRow is a line of a diff, of a numbered listing, of a log or of a table.
	diffOrRow = regexp.MustCompile(`^(?:[+-]{1,3}\S|@@|\d+[:|\t→]|\d+\s*[│|]|\||\[\d|\d{2,4}[-:/]\d)`)
	prose     = regexp.MustCompile(`^(?:[A-Z][a-z']*|I|[a-z]+) (?:[\w',-]+ ){3,}[\w']+[.!?:]$`)
)

// isCode reports whether a line is code, a listing or a log. Indented lines are.
func isCode(line, trimmed string) bool {
	if prose.MatchString(trimmed) {
		return false
	}
	indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
	return indented && mark0.FindString(strings.TrimSpace(line)) == "" || statement.MatchString(trimmed) || diffOrRow.MatchString(trimmed)
}
