package search

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ctxdir/ctxdir"
)

// cursor is the place of a hit in the order of a search.
type cursor struct {
	score float64
	at    int64
	n     int64
}

func (c *cursor) encode() string {
	b := binary.AppendVarint(nil, c.n)
	b = binary.AppendVarint(b, c.at)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.score))
	return base64.RawURLEncoding.EncodeToString(b)
}

func (c *cursor) decode(text string) error {
	if text == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	n, size := binary.Varint(b)
	at, more := binary.Varint(b[max(size, 0):])
	if err != nil || size <= 0 || more <= 0 || len(b) != size+more+8 {
		return fmt.Errorf("%w: %q is not a search cursor", ctxdir.ErrInvalid, text)
	}
	c.n, c.at, c.score = n, at, math.Float64frombits(binary.LittleEndian.Uint64(b[size+more:]))
	return nil
}

// precedes reports whether a row of a list, newest first, comes after the one of the cursor.
func (c *cursor) precedes(row *cursor) bool {
	if row.at != c.at {
		return row.at < c.at
	}
	if row.n != c.n {
		return row.n < c.n
	}
	return row.score > c.score
}
