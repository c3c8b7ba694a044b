package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// Errors that callers distinguish.
var (
	// ErrDamaged is wrapped by errors about a log, or a part of it, that differs from what was written.
	ErrDamaged = errors.New("damaged")
	// ErrVersion is wrapped by errors about a log of a version that this program does not know.
	ErrVersion = errors.New("unsupported log format")
	// ErrDurability reports a failed sync. Whether the records are on disk is unknown, and they are not acknowledged.
	ErrDurability = errors.New("sync failed, data may not be durable")
)

const version = "log/1"

// Beginning is the body of a log's first record: the place from which it goes on, and the state of the context there.
type Beginning struct {
	Version   string          `json:"ctxdir"`
	Context   uuid.UUID       `json:"context"`
	Store     uuid.UUID       `json:"store"`
	Number    uint64          `json:"number"` // of the log: one more than that of the one before
	Seq       uint64          `json:"seq"`
	Chain     string          `json:"chain"`
	State     json.RawMessage `json:"state"`
	CreatedAt time.Time       `json:"created_at"`

	at Position
}

// Position returns the place from which the log goes on.
func (b *Beginning) Position() Position { return b.at }

// encode returns the whole record.
func (b *Beginning) encode(at Position) ([]byte, error) {
	b.Version, b.Seq, b.Chain, b.at = version, at.Seq, Hex(at.Chain), at
	body, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	h := Head{Prev: at.Chain, Seq: at.Seq, Kind: Begin, Len: int64(len(body)), Sum: message.Sum(body)}
	return appendRecord(nil, &h, body), nil
}

func parseBeginning(body []byte) (b Beginning, err error) {
	if err := jsonv2.Unmarshal(body, &b, message.Verbatim...); err != nil {
		return b, fmt.Errorf("%w: begin record: %w", ErrDamaged, err)
	}
	if b.Version != version {
		return b, fmt.Errorf("%w: the log has version %q, expected %q", ErrVersion, b.Version, version)
	}
	chain, ok := parseHex([]byte(b.Chain))
	if b.at = (Position{b.Seq, chain}); !ok || b.Seq > MaxSeq {
		return b, fmt.Errorf("%w: begin record with number %d and chain %q", ErrDamaged, b.Seq, b.Chain)
	}
	return b, nil
}

// ending is the body of a log's last record.
type ending struct {
	Next string `json:"next"` // the file of the log that continues
}

// maxSpace bounds how many bytes are preallocated at once. An append that makes the file longer waits for the file
// system's journal, so that it is slower than the others. Opening a context reads the space, at 10 GB/s.
const maxSpace = 512 << 10

// page is how many bytes a file system writes whole or not at all, or a part of that number.
const page = 4 << 10

// space returns how many newlines to preallocate after a log that will end at end. It doubles the log, within bounds: a
// small context's log stays small, and a large one seldom changes its size. It fills the last page: a crash that takes
// back a later write's growth of the file then leaves the file's end there, too (see torn).
func space(end int64) int {
	laid := end + min(max(end, page), maxSpace)
	return int((laid+page-1)/page*page - end)
}

func blankSpace(n int) []byte { return bytes.Repeat([]byte{'\n'}, n) }
