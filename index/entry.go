package index

import (
	"time"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// Entry says all about a message but its content.
type Entry struct {
	Line     uuid.UUID
	Position int64
	ID       uuid.UUID
	Seq      uint64 // of the record that committed this version
	At       int64  // the time of that commit, microseconds since 1970
	Size     int64  // of the envelope, in bytes; 0 if it is gone
	Sum      uint64 // of the envelope; 0 if it is gone
	Payloads int    // references to blobs in the message
	Gone     archive.Gone

	log *openLog      // which has its record at off, or else
	off int64         //
	seg *openSegment  // which has it at place
	row archive.Place //
}

// StoredAt returns the time of the commit.
func (e *Entry) StoredAt() time.Time { return time.UnixMicro(e.At).UTC() }

func (e *Entry) inSegment() archive.Row {
	return archive.Row{
		Line: e.Line, Position: e.Position, Seq: e.Seq, ID: e.ID, At: e.At, Size: e.Size, Sum: e.Sum, Payloads: e.Payloads,
		Gone: e.Gone, Place: e.row,
	}
}

func entryOfRow(r *archive.Row, s *openSegment) Entry {
	return Entry{
		Line: r.Line, Position: r.Position, ID: r.ID, Seq: r.Seq, At: r.At, Size: r.Size, Sum: r.Sum, Payloads: r.Payloads,
		Gone: r.Gone, seg: s, row: r.Place,
	}
}

func entryOfAddress(a *message.Address, seq uint64, size int64, sum uint64) Entry {
	return Entry{
		Line: a.Line, Position: a.Position, ID: a.ID, Seq: seq, At: a.StoredAt.UnixMicro(), Size: size, Sum: sum, Payloads: a.Payloads,
	}
}

// lostAt is what is known of a position whose row is missing or damaged.
func lostAt(line uuid.UUID, position int64) Entry {
	return Entry{Line: line, Position: position, Gone: archive.Lost}
}

// IsErased reports whether the message was erased on purpose: all that is left of it is that it was there.
func (e *Entry) IsErased() bool { return e.Gone == archive.Erased }

// IsLost reports whether no copy of the message is known to be whole. Without an id, nothing but its place is known.
func (e *Entry) IsLost() bool { return e.Gone == archive.Lost }

// IsSealed reports whether a segment has the message.
func (e *Entry) IsSealed() bool { return e.seg != nil }

// Now returns the time for a commit, in whole microseconds, which every file system keeps as the time of a file.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Next returns the time for the commit of a newer version: later than this one, whatever the clock says.
func (e *Entry) Next() time.Time {
	now := Now()
	if least := e.StoredAt().Add(time.Microsecond); now.Before(least) {
		return least
	}
	return now
}
