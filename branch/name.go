package branch

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Errors that callers distinguish.
var (
	ErrName      = errors.New("invalid branch name")
	ErrExist     = errors.New("branch already exists")
	ErrNotExist  = errors.New("no such branch")
	ErrActive    = errors.New("branch is active")
	ErrKind      = errors.New("branch is not part of the conversation")
	ErrPosition  = errors.New("position is out of range")
	errDescent   = errors.New("line not found in the metadata")
	errNoSegment = errors.New("position belongs to no line")
)

// maxFolder is the longest folder name that every file system accepts, in bytes.
const maxFolder = 255

// Folder returns the folder name of a branch name. Free text is allowed, emoji too: Folder writes each character that
// some file system rejects as %XX. It fails with ErrName when the name is empty, is not UTF-8, or becomes too long.
func Folder(name string) (string, error) {
	switch {
	case name == "":
		return "", fmt.Errorf("%w: the name is empty", ErrName)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%w: %q is not valid UTF-8", ErrName, name)
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%w: %q contains a NUL character", ErrName, name)
	}
	var b strings.Builder
	b.WriteString(ctxfolder.FolderPrefix)
	for i, r := range name {
		last := i+utf8.RuneLen(r) == len(name)
		if r < 0x20 || r == 0x7f || strings.ContainsRune(`%/\:*?"<>|`, r) || (r == ' ' || r == '.') && last || r == ' ' && i == 0 {
			fmt.Fprintf(&b, "%%%02X", r)
			continue
		}
		b.WriteRune(r)
	}
	if b.Len() > maxFolder {
		return "", fmt.Errorf("%w: %q needs a folder name of %d bytes, which exceeds the limit of %d", ErrName, name, b.Len(), maxFolder)
	}
	return b.String(), nil
}

// alike reports whether some file system takes two names for one: they are equal under NFC and case folding. Every fork
// compares its name with those of all branches and folders, and most of them differ in an early ASCII character. No
// normalisation makes such characters equal.
func alike(a, b string) bool {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] >= utf8.RuneSelf || b[i] >= utf8.RuneSelf:
			return fold(a) == fold(b)
		case lower(a[i]) != lower(b[i]):
			return false
		}
	}
	return len(a) == len(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func fold(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(s)
	}
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(s)))
}
