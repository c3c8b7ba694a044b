// Package archive is a part of the engine and promises nothing to other modules. It writes and reads segments:
// immutable files that hold the records of a part of a context's history, compressed.
//
// A segment is a standard zstd stream. Its message frames hold envelopes, each followed by a newline. So zstdcat prints
// the messages. Rows, records that are not messages, and tables are in skippable frames, which zstd tools ignore.
//
// A block is one message frame and the rows of its messages. A [Row] says everything about a message but its content;
// reading rows decompresses nothing. The directory maps a line and position to a block, the id table maps an id to a
// message. The package reads both in pages. So the cost of opening a segment is constant, and the cost of a look-up grows
// with the logarithm of the number of messages.
//
// [Create] makes a segment, [Open] reads one, [Rewrite] makes one of several. Blocks describe themselves: [Salvage]
// opens a damaged segment and rebuilds its tables.
//
// The package never changes a committed segment, and returns only checksummed bytes of messages.
package archive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/journal"
)

// Errors that callers distinguish. A message larger than the limit gives vfs.ErrTooLarge.
var (
	// ErrDamaged is wrapped by errors about a segment, or a part of it, that differs from what was written.
	ErrDamaged = journal.ErrDamaged
	// ErrVersion is wrapped by errors about a segment of a version that this program does not know.
	ErrVersion = errors.New("unsupported segment format")
	// ErrNotFound is wrapped when a segment does not hold the requested message.
	ErrNotFound = errors.New("not found in the segment")
	// ErrOrder is wrapped when an added message or record belongs before, or in the place of, the last one.
	ErrOrder = errors.New("out of order")
	// ErrFull is wrapped when a segment holds as many messages as it can.
	ErrFull = errors.New("segment is full")
)

const (
	// FrameSize limits the decoded size of a frame, in bytes, unless it holds a single message.
	FrameSize = 1 << 20
	// MaxMessage is the largest envelope that a segment takes, in bytes. It bounds the memory that a frame can claim.
	MaxMessage = 320 << 20
	// MaxCount limits the entries of each table of a segment.
	MaxCount = 1 << 24
)

// End is the suffix of every segment's file name.
const End = ".zst"

// Name is what the name of a segment's file says: the numbers of its first and last record, and the upper half of the
// chain of the last one, which tells histories apart. A rewritten segment has the next edition: the greatest counts.
type Name struct {
	From, To uint64
	Chain    uint32
	Edition  uint32
}

// NameOf is the name of the first edition of the segment with the records between two places.
func NameOf(from, to journal.Position) Name {
	return Name{from.Seq + 1, to.Seq, uint32(to.Chain >> 32), 0}
}

// File returns the name of the file.
func (n Name) File() string {
	if n.Edition > 0 {
		return fmt.Sprintf("%d-%d-%08x-%d%s", n.From, n.To, n.Chain, n.Edition, End)
	}
	return fmt.Sprintf("%d-%d-%08x%s", n.From, n.To, n.Chain, End)
}

// ParseName is the inverse of [Name.File]. It rejects other forms.
func ParseName(file string) (n Name, ok bool) {
	s, ok := strings.CutSuffix(file, End)
	parts := strings.Split(s, "-")
	if !ok || len(parts) < 3 || len(parts) > 4 {
		return n, false
	}
	from, err1 := strconv.ParseUint(parts[0], 10, 63)
	to, err2 := strconv.ParseUint(parts[1], 10, 63)
	chain, err3 := strconv.ParseUint(parts[2], 16, 32)
	n = Name{from, to, uint32(chain), 0}
	var err4 error
	if len(parts) == 4 {
		var edition uint64
		edition, err4 = strconv.ParseUint(parts[3], 10, 32)
		n.Edition = uint32(edition)
	}
	return n, errors.Join(err1, err2, err3, err4) == nil && from > 0 && from <= to && n.File() == file
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func isDamage(err error) bool { return errors.Is(err, ErrDamaged) }

func isVersion(err error) bool { return errors.Is(err, ErrVersion) }
