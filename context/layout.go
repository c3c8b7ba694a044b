// Package context is the folder of one context: where its files lie, how it is made atomically, locked and
// recognised, its metadata.json and its message files.
//
// It knows nothing of order or of what is committed: that is what package index is for. It never follows
// a link out of the folder and never trusts a name it reads: branch folders and file names are checked
// before they become paths.
//
// Its name meets the standard library's: import it as ctxfolder.
package context

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Names in a store and in a context's folder.
const (
	MetadataFile = "metadata.json"
	IndexFile    = "index.json"
	RowsFolder   = "index"
	Archive      = "archive"
	Messages     = "messages"
	Trash        = "trash"
	Locks        = "locks"
	Staging      = "staging"

	// readyEnd ends the name of a folder in staging/ that is complete and durable, and is to take the place of another one.
	readyEnd = ".ready"

	// FolderPrefix begins the name of every folder in messages/.
	FolderPrefix = "branch-"
	// MessageEnd ends the name of a message's file.
	MessageEnd   = ".json"
	rowsEnd      = ".rows"
	journalStart = "journal-"
	journalEnd   = ".jsonl"
)

// uuidWidth is how many characters an id has.
const uuidWidth = 36

// Errors that callers tell apart.
var (
	// ErrNotExist is wrapped when there is no context of that id.
	ErrNotExist = errors.New("no such context")
	// ErrExist is wrapped when a context of that id is there already.
	ErrExist = errors.New("context exists already")
	// ErrGone is wrapped when the folder a handle refers to was moved away, removed or replaced.
	ErrGone = errors.New("context was moved or removed")
	// ErrMetadata is wrapped when metadata.json cannot be used.
	ErrMetadata = errors.New("metadata.json cannot be used")
	// ErrVersion is wrapped when a file is of a format version this program does not know.
	ErrVersion = errors.New("unsupported format version")
)

// JournalFile is the name of a generation's journal.
func JournalFile(generation uint64) string {
	return fmt.Sprintf("%s%d%s", journalStart, generation, journalEnd)
}

// ParseJournalFile is the inverse of JournalFile.
func ParseJournalFile(name string) (generation uint64, ok bool) {
	s, ok := strings.CutPrefix(name, journalStart)
	if !ok {
		return 0, false
	}
	s, ok = strings.CutSuffix(s, journalEnd)
	if !ok || s == "" || len(s) > 18 || s[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		generation = generation*10 + uint64(c-'0')
	}
	return generation, true
}

// RowsFile is the path of a line's row file. Its number is raised when rows are taken out of it or put into its middle: the file is
// written anew then, beside the one before.
func RowsFile(line uuid.UUID, number uint64) string {
	if number == 0 {
		return RowsFolder + "/" + line.String() + rowsEnd
	}
	return RowsFolder + "/" + line.String() + "-" + strconv.FormatUint(number, 10) + rowsEnd
}

// ParseRowsFile is the inverse of RowsFile, for a name without its folder.
func ParseRowsFile(name string) (line uuid.UUID, number uint64, ok bool) {
	s, ok := strings.CutSuffix(name, rowsEnd)
	if !ok || len(s) < uuidWidth {
		return uuid.Nil, 0, false
	}
	line, ok = ParseID(s[:uuidWidth])
	if s = s[uuidWidth:]; ok && s != "" {
		number, _ = strconv.ParseUint(s[1:], 10, 63)
		ok = number > 0 && RowsFile(line, number) == RowsFolder+"/"+name
	}
	return line, number, ok
}

// MessageFile is the name of a message's file in its folder.
func MessageFile(id uuid.UUID) string { return id.String() + MessageEnd }

// ParseMessageFile is the inverse of MessageFile; other spellings of an id are none of ours.
func ParseMessageFile(name string) (uuid.UUID, bool) {
	s, ok := strings.CutSuffix(name, MessageEnd)
	if !ok {
		return uuid.Nil, false
	}
	return ParseID(s)
}

// ParseID reads an id in its one valid spelling: 36 characters, lower case.
func ParseID(s string) (uuid.UUID, bool) {
	if len(s) != uuidWidth {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil && id.String() == s
}

// ValidFolder reports whether name can be a folder in messages/: it has the prefix, is one path element
// on every platform, and leads nowhere else.
func ValidFolder(name string) bool {
	rest, ok := strings.CutPrefix(name, FolderPrefix)
	return ok && rest != "" && len(name) <= 255 && !strings.ContainsAny(rest, "/\\:\x00") && !strings.HasSuffix(rest, ".")
}

// Needed reports whether a file in a context's folder belongs to the context: it is no trash and nothing temporary.
func Needed(path string) bool {
	dir, name, inside := strings.Cut(path, "/")
	if !inside {
		_, journal := ParseJournalFile(path)
		return journal || path == MetadataFile || path == IndexFile
	}
	return dir != Trash && !strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], ".")
}
