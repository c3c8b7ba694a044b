package storetest_test

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// archivedKinds are the contexts that TestDamageArchived damages.
var archivedKinds = []string{"all", "half", "two packs"}

// otherPackVersion makes of a pack one of another version, by its footer, or by its head where that is damaged.
func otherPackVersion(b []byte, where string) []byte {
	foot := b[len(b)-64:]
	if where == "head" {
		b[15], foot[0] = '2', foot[0]^1
		return b
	}
	foot[55] = '2'
	binary.LittleEndian.PutUint64(foot[56:], xxhash.Sum64(foot[:56]))
	return b
}
