package search

import (
	"regexp"
	"strings"
)

// named is how a shell command touches a file: it has the path as a word, and may do anything with it. Such a file
// counts for [Index.Paths] only.
const named = "named"

// commandNames are the names of members with a shell command: a string, or a list of strings.
var commandNames = nameSet("command cmd")

// maxCommand bounds what is read of a command, in bytes.
const maxCommand = 4 << 10

// maxNamed bounds the files of a message, so that those of commands leave room for others.
const maxNamed = maxFiles / 2

// fileWord is a word that can be a path, without variables and patterns.
var fileWord = regexp.MustCompile(`^~?[\w@%+.-]*(?:/[\w@%+.\[\]-]+)*$`)

// eachNamed yields the words of a shell command that are the path of a file: those with the name or the ending of a
// known type. A text that the command contains is not read.
func eachNamed(command string, yield func(path string)) {
	command, _, _ = strings.Cut(command[:min(len(command), maxCommand)], "<<")
	for _, w := range strings.FieldsFunc(command, isBetweenWords) {
		// main.go:12:5 is a place in a file, and main:main.go the file of a commit.
		at := strings.LastIndexByte(w, ':')
		for ; at >= 0 && strings.Trim(w[at+1:], "0123456789-") == ""; at = strings.LastIndexByte(w, ':') {
			w = w[:at]
		}
		w = w[at+1:]
		if !strings.HasPrefix(w, "-") && fileWord.MatchString(w) && mediaTypeOf(w, "") != "" && isPath(w) {
			yield(w)
		}
	}
}

func isBetweenWords(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>()=,{}", r) }

// maxFiles bounds the files of one message.
const maxFiles = 1000

func nameSet(words string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(words) {
		all[w] = true
	}
	return all
}
