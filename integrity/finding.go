// Package integrity finds what is wrong with a context and mends it.
//
// A check changes nothing, takes no lock and runs beside writers: what looks wrong is looked at again before it is told,
// since another process may have been in the middle of it. A repair finds the same, then looks at each thing once more with
// the context locked, and mends it. What it replaces goes to trash first; what it does is done again without harm.
package integrity

import (
	"github.com/google/uuid"
)

// Kind says what a finding is about.
type Kind string

// The kinds of findings.
const (
	KindStore     Kind = "store"              // ctxdir.json is missing or cannot be used
	KindContext   Kind = "context"            // nothing of the context can be looked at
	KindMetadata  Kind = "metadata"           // metadata.json is missing or cannot be used
	KindStructure Kind = "structure"          // metadata.json contradicts the messages
	KindIndex     Kind = "index"              // index.json or row files are missing, damaged or of something else
	KindJournal   Kind = "journal"            // a journal is missing or damaged
	KindMissing   Kind = "message-missing"    // a message has no file
	KindDamaged   Kind = "message-damaged"    // a message's file holds something else
	KindUnread    Kind = "message-unreadable" // a message's file cannot be read
	KindLost      Kind = "message-lost"       // no copy was found; the message is marked unavailable
	KindFound     Kind = "message-found"      // the file of a lost message is there again
	KindEdited    Kind = "message-edited"     // a message was changed by hand
	KindMisplaced Kind = "message-misplaced"  // a message's file lies in another folder
	KindDuplicate Kind = "message-duplicate"  // another file holds the same message
	KindForeign   Kind = "message-foreign"    // a valid message that was never committed here
	KindErased    Kind = "message-erased"     // the file of a message that was erased
	KindFolder    Kind = "folder"             // something else lies where a folder belongs
	KindName      Kind = "name"               // a file or folder of ours bears its name in another spelling
	KindLock      Kind = "lock"               // something else lies where a lock belongs
	KindErasing   Kind = "erasing"            // an erase was interrupted
	KindStray     Kind = "stray"              // something else among message files
	KindTemporary Kind = "temporary"          // left by a writer that was stopped
	KindPack      Kind = "pack-damaged"       // a part of a pack of archived messages
	KindPayload   Kind = "blob-missing"       // a payload that a message refers to
	KindBlob      Kind = "blob-damaged"
	KindLegacy    Kind = "legacy" // a legacy context in the store; package legacy says what is wrong with it
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // something cannot be read
	SeverityWarning Severity = "warning" // everything can be read that ever can; something is not as it was committed
	SeverityInfo    Severity = "info"    // in order, and good to know
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Context    uuid.UUID
	Kind       Kind
	Severity   Severity
	Path       string    // relative to the store, empty when it is about no single file
	ID         uuid.UUID // of the message
	Detail     string
	Repairable bool
}

// Repaired is one thing that was mended, or would be.
type Repaired struct {
	Context uuid.UUID
	Kind    Kind
	Path    string // as in [Finding]
	ID      uuid.UUID
	Detail  string // what was done
}
