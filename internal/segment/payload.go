package segment

import (
	"crypto/sha256"

	"github.com/ctxdir/ctxdir/blob"
)

// Sum names a payload: the SHA-256 of its bytes.
type Sum = blob.Sum

// SumOf returns the name of a payload.
func SumOf(payload []byte) Sum { return blob.SumOf(payload) }

// A group is a skippable frame with payloads: their count (4 bytes), the name and length (4 bytes) of each, and one
// zstd frame with all of them in sequence, and a placed sum. If all are empty, the zstd frame is missing.
const (
	groupEntry = sha256.Size + 4
	// groupCount is the most payloads that a group holds.
	groupCount = 4096
	// maxGroup is the greatest length of a group.
	maxGroup = skipHead + 4 + groupCount*groupEntry + FrameSize + FrameSize/64 + 64 + sumSize
)

// group is a group of payloads that a writer fills or that was read.
type group struct {
	sums    []Sum
	sizes   []int
	content []byte
}

// full reports whether a payload of n bytes needs another group, if a group holds up to limit bytes.
func (g *group) full(n, limit int) bool {
	return len(g.sums) > 0 && (len(g.content)+n > limit || len(g.sums) == groupCount)
}

func (g *group) add(sum Sum, payload []byte) {
	g.sums = append(g.sums, sum)
	g.sizes = append(g.sizes, len(payload))
	g.content = append(g.content, payload...)
}

func (g *group) reset() { g.sums, g.sizes, g.content = g.sums[:0], g.sizes[:0], g.content[:0] }

// append appends the group, which is at an offset of the file; frame is its compressed content.
func (g *group) append(b, frame []byte, at int64) []byte {
	start := len(b)
	b = appendSkip(b, kindPayloads, 4+len(g.sums)*groupEntry+len(frame)+sumSize)
	b = le.AppendUint32(b, uint32(len(g.sums)))
	for i, s := range g.sums {
		b = append(b, s[:]...)
		b = le.AppendUint32(b, uint32(g.sizes[i]))
	}
	b = append(b, frame...)
	return le.AppendUint64(b, placedSum(b[start+8:], at))
}

// parseGroup reads a whole group, which is at an offset of the file. It does not compare the payloads with their names.
// If the content is damaged, it returns the names with the error.
func parseGroup(b []byte, at int64) (g group, err error) {
	if !isSkip(b, kindPayloads) || len(b) < skipHead+4+sumSize || !placed(b, at) {
		return g, damaged("no group of payloads")
	}
	b = b[:len(b)-sumSize]
	n := int64(le.Uint32(b[skipHead:]))
	b = b[skipHead+4:]
	if n > groupCount || n*groupEntry > int64(len(b)) {
		return g, damaged("group of %d payloads", n)
	}
	total := int64(0)
	for range n {
		size := int64(le.Uint32(b[sha256.Size:]))
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
	g.content, err = decode(b, total, nil)
	return g, err
}

// payload returns a payload of the group after verifying its name.
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
