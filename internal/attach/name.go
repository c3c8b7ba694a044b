package attach

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/plain"
)

const (
	maxNameBytes   = 200 // of a part of a name; it leaves room for a number
	maxNameFolders = 8   // in a name
)

// deviceName matches names that mean a device on Windows, with any extension.
var deviceName = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)`)

// SafeName turns a path from a message into a relative path with slashes, "" if nothing remains. The path does not
// leave its folder, and no part of it is an option, hidden, a device, or looks like another name.
func SafeName(name string) string {
	var parts []string
	for part := range strings.SplitSeq(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/") {
		if part = safePart(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts[max(len(parts)-maxNameFolders-1, 0):], "/")
}

func safePart(part string) string {
	part = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError || strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case plain.ControlsTerminal(r) || unicode.Is(unicode.Cf, r): // invisible characters make names look alike
			return -1
		}
		return r
	}, part)
	ext := path.Ext(part)
	if stem := strings.TrimSuffix(part, ext); len(part) > maxNameBytes && len(ext) < 20 {
		part = cutText(stem, maxNameBytes-len(ext)) + ext
	}
	part = cutText(part, maxNameBytes)
	part = strings.TrimRightFunc(strings.TrimLeftFunc(part, func(r rune) bool { return r == '-' || r == '.' || unicode.IsSpace(r) }),
		func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	if deviceName.MatchString(part) {
		part = "_" + part
	}
	return part
}

// cutText returns at most n bytes of a text, without splitting a character.
func cutText(s string, n int) string {
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:min(n, len(s))]
}
