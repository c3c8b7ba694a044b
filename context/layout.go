// Package context manages the folder of one context: its layout, atomic creation and recognition, the names of its
// locks, its metadata.json and its message files. Package engine waits for the locks.
//
// Package index, not this package, knows the order of messages and the commits. This package never follows a link out
// of the folder and never trusts a name it reads: it checks branch folders and file names before it makes paths of
// them.
//
// Its name is that of a standard library package: import it as ctxfolder.
package context

import (
	"errors"
	"math/rand/v2"
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

	// readyEnd ends the name of a complete, durable folder in staging/ that is about to replace another folder.
	readyEnd = ".ready"

	// FolderPrefix begins the name of every folder in messages/.
	FolderPrefix = "branch-"
	// MessageEnd ends the name of a message's file.
	MessageEnd   = ".json"
	rowsEnd      = ".rows"
	journalStart = "journal-"
	journalEnd   = ".jsonl"
	doubtEnd     = ".doubt"
)

// uuidWidth is the number of characters of an id.
const uuidWidth = 36

// Errors that callers distinguish.
var (
	// ErrNotExist reports that no context has the id.
	ErrNotExist = errors.New("no such context")
	// ErrExist reports that a context already has the id.
	ErrExist = errors.New("context already exists")
	// ErrGone reports that the folder of a handle was moved, removed or replaced.
	ErrGone = errors.New("context was moved or removed")
	// ErrMetadata reports that metadata.json is unusable.
	ErrMetadata = errors.New("metadata.json is unusable")
	// ErrVersion reports a file of a format version that this program does not know.
	ErrVersion = errors.New("unsupported format version")
)

// JournalFile returns the name of a generation's journal.
func JournalFile(generation uint64) string {
	return journalStart + strconv.FormatUint(generation, 10) + journalEnd
}

// NewDoubt returns a unique name for the file which says that blocks of a generation's journal may not keep what is
// written to them.
func NewDoubt(generation uint64) string {
	return "." + JournalFile(generation) + "." + strconv.FormatUint(rand.Uint64(), 16) + doubtEnd
}

// IsDoubt reports whether a name is that of such a file, for a generation's journal.
func IsDoubt(name string, generation uint64) bool {
	return strings.HasPrefix(name, "."+JournalFile(generation)+".") && strings.HasSuffix(name, doubtEnd)
}

// ParseJournalFile is the inverse of JournalFile.
func ParseJournalFile(name string) (generation uint64, ok bool) {
	s := strings.TrimSuffix(strings.TrimPrefix(name, journalStart), journalEnd)
	if len(s) > 18 {
		return 0, false // a name cannot lead to the end of the numbers
	}
	generation, _ = strconv.ParseUint(s, 10, 64)
	return generation, generation > 0 && name == JournalFile(generation)
}

// RowsFile returns the path of a line's row file. Removing rows, or inserting rows into the middle, writes a new file
// with a higher number beside the old one.
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

// MessageFile returns the name of a message's file in its folder.
func MessageFile(id uuid.UUID) string {
	var name [uuidWidth + len(MessageEnd)]byte
	text, _ := id.MarshalText()
	copy(name[:], text)
	copy(name[uuidWidth:], MessageEnd)
	return string(name[:])
}

// ParseMessageFile is the inverse of MessageFile. It rejects other spellings of an id.
func ParseMessageFile(name string) (uuid.UUID, bool) {
	s, ok := strings.CutSuffix(name, MessageEnd)
	if !ok {
		return uuid.Nil, false
	}
	return ParseID(s)
}

// ParseID parses an id in its only valid spelling: 36 characters, lower case.
func ParseID(s string) (uuid.UUID, bool) {
	if len(s) != uuidWidth {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil && id.String() == s
}

// ValidFolder reports whether name can be a folder in messages/: it has the prefix, is one path element on every
// platform, and cannot escape messages/.
func ValidFolder(name string) bool {
	rest, ok := strings.CutPrefix(name, FolderPrefix)
	return ok && rest != "" && len(name) <= 255 && !strings.ContainsAny(rest, "/\\:\x00") && !strings.HasSuffix(rest, ".")
}

// Needed reports whether a file in a context's folder belongs to the context: it is neither trash nor temporary.
func Needed(path string) bool {
	dir, name, inside := strings.Cut(path, "/")
	if !inside {
		_, journal := ParseJournalFile(path)
		return journal || path == MetadataFile || path == IndexFile
	}
	return dir != Trash && !strings.HasPrefix(name[strings.LastIndexByte(name, '/')+1:], ".")
}
