package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Sum names a payload: the SHA-256 of its bytes.
type Sum [sha256.Size]byte

// SumOf returns the name of a payload.
func SumOf(payload []byte) Sum { return sha256.Sum256(payload) }

// String returns 64 hexadecimal digits in lower case.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// A group is a skippable frame with payloads: how many (4 bytes), of each the name and the length (4 bytes), and one zstd frame with all
// of them, one behind the other; none where they are all empty.
const (
	groupEntry = sha256.Size + 4
	// groupCount is how many payloads a group has at most.
	groupCount = 4096
	// maxGroup is the longest a group can be.
	maxGroup = skipHead + 4 + groupCount*groupEntry + FrameSize + FrameSize/64 + 64
)

// group is one that is being filled or was read.
type group struct {
	sums    []Sum
	sizes   []int
	content []byte
}

// full reports whether a payload of n bytes needs another group, where one holds most.
func (g *group) full(n, most int) bool {
	return len(g.sums) > 0 && (len(g.content)+n > most || len(g.sums) == groupCount)
}

func (g *group) add(sum Sum, payload []byte) {
	g.sums = append(g.sums, sum)
	g.sizes = append(g.sizes, len(payload))
	g.content = append(g.content, payload...)
}

func (g *group) reset() { g.sums, g.sizes, g.content = g.sums[:0], g.sizes[:0], g.content[:0] }

// append appends the group, frame being its content compressed.
func (g *group) append(b, frame []byte) []byte {
	b = appendSkip(b, kindPayloads, 4+len(g.sums)*groupEntry+len(frame))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(g.sums)))
	for i, s := range g.sums {
		b = append(b, s[:]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(g.sizes[i]))
	}
	return append(b, frame...)
}

// parseGroup reads a whole group. It looks at the names and lengths only; the payloads are not compared with them. Where the content is
// damaged, the names are returned with the error.
func parseGroup(b []byte) (g group, err error) {
	if !isSkip(b, kindPayloads) || len(b) < skipHead+4 {
		return g, damaged("no group of payloads")
	}
	n := int64(binary.LittleEndian.Uint32(b[skipHead:]))
	b = b[skipHead+4:]
	if n > groupCount || n*groupEntry > int64(len(b)) {
		return g, damaged("group of %d payloads", n)
	}
	total := int64(0)
	for range n {
		size := int64(binary.LittleEndian.Uint32(b[sha256.Size:]))
		if total += size; total > FrameSize {
			return group{}, damaged("group of more than %d bytes", FrameSize)
		}
		g.sums = append(g.sums, Sum(b))
		g.sizes = append(g.sizes, int(size))
		b = b[groupEntry:]
	}
	if total == 0 && len(b) == 0 {
		return g, nil // nothing to compress, no frame
	}
	g.content, err = decode(b, total)
	return g, err
}

// payload returns one of the group's payloads, if it is the one of this name.
func (g *group) payload(number int64, sum Sum) ([]byte, error) {
	if number >= int64(len(g.sums)) || g.sums[number] != sum {
		return nil, damaged("payload %s is not where the table says", sum)
	}
	at := 0
	for _, n := range g.sizes[:number] {
		at += n
	}
	b := g.content[at : at+g.sizes[number]]
	if got := SumOf(b); got != sum {
		return nil, damaged("payload %s is %s", sum, got)
	}
	return b, nil
}
