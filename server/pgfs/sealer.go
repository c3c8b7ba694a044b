package pgfs

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// Sealer encrypts what the database stores of one user. Several goroutines may use it.
type Sealer interface {
	// Seal encrypts content. Opening it takes the same associated data.
	Seal(plain, ad []byte) ([]byte, error)
	// Open decrypts content, or fails if it or its associated data differ from what was sealed.
	Open(sealed, ad []byte) ([]byte, error)
	// SealName encrypts the name of an entry of a folder: equal names of one folder have equal results.
	SealName(name string, parent int64) ([]byte, error)
	// OpenName decrypts a name, or fails if it is not one of that folder.
	OpenName(sealed []byte, parent int64) (string, error)
}

// plain is the Sealer that encrypts nothing.
type plain struct{}

func (plain) Seal(b, _ []byte) ([]byte, error)                { return b, nil }
func (plain) Open(b, _ []byte) ([]byte, error)                { return b, nil }
func (plain) SealName(name string, _ int64) ([]byte, error)   { return []byte(name), nil }
func (plain) OpenName(sealed []byte, _ int64) (string, error) { return string(sealed), nil }

// extentAD is the associated data of an extent: a row that is moved no longer opens.
func extentAD(user uuid.UUID, node int64, x *extent) []byte {
	b := make([]byte, 0, 64)
	b = append(b, "extent"...)
	b = append(b, user[:]...)
	for _, v := range [...]int64{node, x.n, x.off, x.size} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}
