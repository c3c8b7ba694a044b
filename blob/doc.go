// Package blob keeps large and binary payloads out of messages.
//
// A blob is a payload stored once, compressed, under the SHA-256 of its bytes, in its own file, which zstdcat prints.
// [Store] writes and reads blobs. It verifies everything it returns against the blob's name.
//
// A reference is a small JSON object in a stored message that replaces a string moved to a blob. [Externalise] moves
// strings out of a message, [Resolve] puts them back byte for byte, and [Refs] lists them without opening any blob.
// These three are pure functions over the message's JSON. They know no framework's schema beyond the common places of
// binary data.
//
// docs/FORMAT.md, "Blobs and references", specifies the bytes of both.
//
// The package never changes or removes an intact blob, and never moves a string that it could not spell the same again.
package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrDamaged is wrapped by errors about a blob whose file does not hold the payload of its name.
var ErrDamaged = errors.New("damaged blob")

// Sum names a payload: the SHA-256 of its uncompressed bytes.
type Sum [sha256.Size]byte

// SumOf returns the name of a payload.
func SumOf(payload []byte) Sum { return sha256.Sum256(payload) }

// String returns 64 hexadecimal digits in lower case.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// ParseSum reads the output of [Sum.String] only. It rejects upper case, so that a payload has one name.
func ParseSum(text string) (s Sum, err error) {
	if len(text) != 2*len(s) {
		return Sum{}, fmt.Errorf("blob name of %d characters, wanted %d", len(text), 2*len(s))
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return Sum{}, fmt.Errorf("blob name with %q, wanted lower-case hexadecimal digits", text[i])
		}
		s[i/2] = s[i/2]<<4 | c
	}
	return s, nil
}

func damaged(sum Sum, format string, args ...any) error {
	return fmt.Errorf("blob %s: %w: %s", sum, ErrDamaged, fmt.Sprintf(format, args...))
}
