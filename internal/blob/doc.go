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
// docs/FORMAT.md, "Blobs and payloads", specifies the bytes of both.
//
// The package never changes or removes an intact blob, and never moves a string unless it can restore every byte of its
// spelling.
package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrDamaged is wrapped by errors about a blob whose file does not hold the payload of its name.
var ErrDamaged = errors.New("damaged blob")

// Sum names a payload: the SHA-256 of its uncompressed bytes.
type Sum [sha256.Size]byte

const hexLen = 2 * len(Sum{})

// SumOf returns the name of a payload.
func SumOf(payload []byte) Sum { return sha256.Sum256(payload) }

// String returns 64 hexadecimal digits in lower case.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// ParseSum reads the output of [Sum.String] only. It rejects upper case, so that a payload has one name.
func ParseSum(text string) (Sum, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(Sum{}) || strings.ToLower(text) != text {
		return Sum{}, fmt.Errorf("%.80q is not the name of a blob: expected %d lower-case hexadecimal digits", text, hexLen)
	}
	return Sum(b), nil
}

func damaged(sum Sum, format string, args ...any) error {
	return fmt.Errorf("%w %s: %s", ErrDamaged, sum, fmt.Sprintf(format, args...))
}
