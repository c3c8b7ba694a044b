// Package archive writes and reads packs: immutable files that hold many messages, compressed.
//
// A pack is a standard zstd stream. Its message frames hold envelopes, each followed by a newline, so zstdcat prints
// exactly the message files that went in, one after the other. Everything else, rows, payloads and tables, lies in
// skippable frames, which zstd tools pass over.
//
// A segment is one message frame and the rows of its messages. A [Row] is what an index knows of a message; nothing needs to be decoded for
// it. The directory finds a segment by line and position, the id table a message by id; both are read in pages, so opening a pack
// and looking something up cost the same for ten messages and, but for a logarithm, for ten million. The bytes are in docs/FORMAT.md, "Packs".
//
// [Create] makes a pack, [Open] reads one. Segments describe themselves: [Scan] reads what is whole in a damaged pack, [Salvage] opens one as if its
// tables were not damaged.
//
// The package never changes a pack that has its name, and gives back no byte of a message or payload that its checksum
// does not cover.
package archive

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Errors that callers tell apart. A payload or message larger than the limit gives vfs.ErrTooLarge.
var (
	// ErrDamaged is wrapped by errors about a pack, or a part of it, that is not what was written.
	ErrDamaged = errors.New("damaged pack")
	// ErrVersion is wrapped by errors about a pack of a version that this program does not know.
	ErrVersion = errors.New("unsupported pack format")
	// ErrNotFound is wrapped when a pack does not hold what was asked for.
	ErrNotFound = errors.New("not in the pack")
	// ErrOrder is wrapped when a message is added that belongs before one that is there, or in its place.
	ErrOrder = errors.New("messages out of order")
	// ErrFull is wrapped when a pack holds as many messages or payloads as it can.
	ErrFull = errors.New("pack is full")
)

const (
	// FrameSize is the most that a message frame holds, decoded, in bytes, unless it is of one message. See
	// docs/DESIGN.md for how it was chosen.
	FrameSize = 1 << 20
	// MaxPayload is the largest payload that a pack takes, in bytes: what is larger gains nothing from one.
	MaxPayload = 1 << 20
	// MaxMessage is the largest envelope that a pack takes, in bytes. It bounds the memory that a frame can claim.
	MaxMessage = 64 << 20
	// MaxCount is how many messages, and how many payloads, a pack holds at most.
	MaxCount = 1 << 24
)

// End ends the name of every pack.
const End = ".zst"

// FileName is the name of a pack's file.
func FileName(id uuid.UUID) string { return id.String() + End }

// ParseFileName is the inverse of FileName; other spellings of an id are none of ours.
func ParseFileName(name string) (uuid.UUID, bool) {
	s, ok := strings.CutSuffix(name, End)
	if !ok || len(s) != 36 {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil && id.String() == s
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
