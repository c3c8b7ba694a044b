// Package integrity is a part of the engine and promises nothing to other modules. It checks contexts and stores, and
// repairs them.
//
// A check changes nothing, takes no lock, and runs beside writers. It looks again before it reports a problem, since a
// writer may be in the middle of a change. A repair runs the same check, examines each problem again under the
// context's locks, and fixes it. Replaced files go to the trash first; repeating a repair is safe.
package integrity

import (
	"bytes"
	"cmp"
	"time"

	"github.com/google/uuid"
)

// Kind is the subject of a finding.
type Kind string

// Kinds of findings.
const (
	KindStore     Kind = "store"              // ctxdir.json is missing or unusable
	KindContext   Kind = "context"            // nothing of the context can be examined
	KindMetadata  Kind = "metadata"           // metadata.json is missing, unusable or edited by hand
	KindIndex     Kind = "index"              // index.json is not what was written
	KindStructure Kind = "structure"          // the metadata contradicts the messages
	KindLog       Kind = "log"                // a log is missing, damaged, or of another history
	KindSegment   Kind = "segment"            // a segment is missing, damaged, or of another history
	KindMissing   Kind = "message-missing"    // a message has no file
	KindDamaged   Kind = "message-damaged"    // a message's file holds something else
	KindUnread    Kind = "message-unreadable" // a message's file cannot be read
	KindLost      Kind = "message-lost"       // no copy was found; the message is unavailable
	KindFound     Kind = "message-found"      // there is a file of a lost message
	KindEdited    Kind = "message-edited"     // a message was edited by hand
	KindMisplaced Kind = "message-misplaced"  // a message's file is in another folder
	KindDuplicate Kind = "message-duplicate"  // another file holds the same message
	KindForeign   Kind = "message-foreign"    // a valid message that was never committed here
	KindErased    Kind = "message-erased"     // an erased message still has a file
	KindFolder    Kind = "folder"             // something else is in the place of a folder
	KindLock      Kind = "lock"               // something else is in the place of a lock
	KindErasing   Kind = "erasing"            // an erase was interrupted
	KindUnknown   Kind = "unknown-file"       // an unknown file among message files
	KindTemporary Kind = "temporary"          // a writer that was stopped left it
	KindPayload   Kind = "blob-missing"       // a payload that a message refers to is missing
	KindBlob      Kind = "blob-damaged"
	KindLegacy    Kind = "legacy" // a legacy context in the store; package legacy reports its problems
)

// Severity grades a finding.
type Severity string

// Severities of findings.
const (
	SeverityError   Severity = "error"   // something is unreadable
	SeverityWarning Severity = "warning" // what can be read at all is readable, but something differs from what was committed
	SeverityInfo    Severity = "info"    // in order, and worth knowing
)

// Finding is one deviation from what was committed or expected.
type Finding struct {
	Context    uuid.UUID
	Kind       Kind
	Severity   Severity
	Path       string    // relative to the store; empty if the finding concerns no single file
	ID         uuid.UUID // of the message
	Detail     string
	Repairable bool
}

// Repaired is a repaired problem, or in a dry run, a problem that a repair would fix.
type Repaired struct {
	Context uuid.UUID
	Kind    Kind
	Path    string // as in [Finding]
	ID      uuid.UUID
	Detail  string // what was done
}

// place is where a message is.
type place struct {
	line     uuid.UUID
	position int64
}

// problem is a finding with what its repair needs.
type problem struct {
	Finding
	place
	file     string    // of the history
	found    string    // the path of a file that is not in its place, in the context's folder
	storedAt time.Time // of the message in that file
	sum      [32]byte  // of a payload
	several  int       // how many messages it is about, if not one
	due      bool      // a file that its writer may be about to make
	seq      uint64    // the number of the record that committed the message
}

func (p *problem) subject() subject { return subject{p.Kind, p.Path, p.place, p.ID} }

// subject is what a problem is about: it is the same problem at two looks if it is about the same.
type subject struct {
	kind Kind
	path string
	place
	id uuid.UUID
}

// repairable returns a problem that a repair fixes.
func repairable(kind Kind, severity Severity, path, detail string) problem {
	return problem{Finding: Finding{Kind: kind, Severity: severity, Path: path, Detail: detail, Repairable: true}}
}

func comparePlaces(a, b problem) int {
	return cmp.Or(compareID(a.line, b.line), cmp.Compare(a.position, b.position))
}

func compareID(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
