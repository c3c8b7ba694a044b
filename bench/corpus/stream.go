package corpus

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// Stream is an endless conversation: its message i is a function of the seed and i, so that any of them can be
// named without keeping the ids of a million.
type Stream struct {
	c    *Corpus
	seed uint64
}

// Stream returns the conversation of a seed.
func (c *Corpus) Stream(seed uint64) *Stream { return &Stream{c, mix(seed)} }

// ID is the id of message i: a UUIDv7 whose time grows with i by one millisecond a message.
func (s *Stream) ID(i int64) uuid.UUID {
	const start = 1_750_000_000_000 // some day in 2025, in milliseconds
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(start+i)<<16)
	r := mix(s.seed ^ uint64(i)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint16(id[6:8], uint16(r>>48))
	binary.BigEndian.PutUint64(id[8:], mix(r))
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

func (s *Stream) body(i int64) body {
	return s.c.bodies[mix(s.seed+uint64(i))%uint64(len(s.c.bodies))]
}

// Body is the body of message i.
func (s *Stream) Body(i int64) []byte { return s.body(i).raw }

// Role and type of message i.
func (s *Stream) Role(i int64) (role, kind string) {
	b := s.body(i)
	return b.role, b.kind
}

// mix is SplitMix64: a fixed, well-spread function, so that every engine and every run gets the same.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
