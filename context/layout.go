// Package context is a part of the engine and promises nothing to other modules. It manages the folder of one
// context: its layout, atomic creation and recognition, the names of its locks, its metadata.json and its message
// files. Package engine waits for the locks.
//
// Package index, not this package, knows the order of messages and the commits. This package never follows a link out
// of the folder and never trusts a name it reads: it checks branch folders and file names before it makes paths of
// them.
//
// Its name is that of a standard library package: import it as ctxfolder.
package context

import (
	"errors"
	"strings"

	"github.com/google/uuid"
)

// Names in a store and in a context's folder.
const (
	MetadataFile = "metadata.json"
	IndexFile    = "index.json"
	Segments     = "segments"
	Messages     = "messages"
	Trash        = "trash"
	Locks        = "locks"
	Staging      = "staging"

	// readyEnd ends the name of a complete, durable folder in staging/ that is about to replace another folder.
	readyEnd = ".ready"

	// FolderPrefix begins the name of every folder in messages/.
	FolderPrefix = "branch-"
	// MessageEnd ends the name of a message's file.
	MessageEnd = ".json"
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

// MessageFile returns the name of a message's file in its folder.
func MessageFile(id uuid.UUID) string {
	var name [uuidWidth + len(MessageEnd)]byte
	text, _ := id.MarshalText()
	copy(name[:], text)
	copy(name[uuidWidth:], MessageEnd)
	return string(name[:])
}

// ParseMessageFile is the inverse of MessageFile. It rejects other forms of an id.
func ParseMessageFile(name string) (uuid.UUID, bool) {
	s, ok := strings.CutSuffix(name, MessageEnd)
	if !ok {
		return uuid.Nil, false
	}
	return ParseID(s)
}

// ParseID parses an id in its only valid form: 36 characters, lower case.
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
