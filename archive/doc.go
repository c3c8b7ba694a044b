// Package archive writes and reads packs: immutable files that hold many messages, compressed.
//
// A pack is a standard zstd stream. Its message frames hold envelopes, each followed by a newline. So zstdcat prints
// the archived message files in sequence. Rows, payloads and tables are in skippable frames, which zstd tools ignore.
//
// A segment is one message frame and the rows of its messages. A [Row] is the index entry of a message; reading rows
// decompresses nothing. The directory maps a line and position to a segment, the id table maps an id to a message. The
// package reads both in pages. So the cost of opening a pack is constant, and the cost of a look-up grows with the
// logarithm of the number of messages. docs/FORMAT.md, "Packs", specifies the bytes.
//
// [Create] makes a pack, [Open] reads one. Segments describe themselves: [Scan] reads the intact parts of a damaged
// pack, [Salvage] opens one and rebuilds its tables.
//
// The package never changes a committed pack, and returns only checksummed bytes of messages and payloads.
package archive

import (
	"errors"
	"fmt"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Errors that callers distinguish. A payload or message larger than the limit gives vfs.ErrTooLarge.
var (
	// ErrDamaged is wrapped by errors about a pack, or a part of it, that differs from what was written.
	ErrDamaged = errors.New("damaged pack")
	// ErrVersion is wrapped by errors about a pack of a version that this program does not know.
	ErrVersion = errors.New("unsupported pack format")
	// ErrNotFound is wrapped when a pack does not hold the requested message or payload.
	ErrNotFound = errors.New("not in the pack")
	// ErrOrder is wrapped when an added message belongs before, or in the place of, the last one.
	ErrOrder = errors.New("messages out of order")
	// ErrFull is wrapped when a pack holds as many messages or payloads as it can.
	ErrFull = errors.New("pack is full")
)

const (
	// FrameSize limits the decoded size of a message frame, in bytes, unless it holds a single message. docs/DESIGN.md
	// explains the choice.
	FrameSize = 1 << 20
	// MaxPayload is the largest payload that a pack takes, in bytes. Larger ones gain nothing from packing.
	MaxPayload = 1 << 20
	// MaxMessage is the largest envelope that a pack takes, in bytes. It bounds the memory that a frame can claim.
	MaxMessage = 64 << 20
	// MaxCount limits the messages, and the payloads, of a pack.
	MaxCount = 1 << 24
)

// End is the suffix of every pack's file name.
const End = ".zst"

// FileName returns the name of a pack's file.
func FileName(id uuid.UUID) string { return id.String() + End }

// ParseFileName is the inverse of FileName. It rejects other spellings of an id.
func ParseFileName(name string) (uuid.UUID, bool) {
	s, ok := strings.CutSuffix(name, End)
	if !ok {
		return uuid.Nil, false
	}
	return ctxfolder.ParseID(s)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
