package outline

import (
	"math/bits"
	"slices"
	"sort"
)

// StripLength is the number of messages in a [Strip].
const StripLength = 64

// Strip has the marks of [StripLength] messages in a row: for each kind of mark, in the order of their numbers, one bit a
// message. The first message has the lowest bit, and a position that the length divides.
type Strip [MarkCount]uint64

// Branch knows where a branch has marks.
type Branch struct {
	length int64
	strips []Strip
	begins []int64 // of turns; see starts
}

// NewBranch returns a branch of so many messages without marks.
func NewBranch(length int64) *Branch {
	length = max(length, 0)
	return &Branch{length: length, strips: make([]Strip, 0, min((length+StripLength-1)/StripLength, 1<<10))}
}

// Add adds the strip with a number, 0 for that of position 0, as far as it is at the positions from to, without to.
// Strips come in order; a part of one may come from another line.
func (b *Branch) Add(number int64, s Strip, from, to int64) {
	first := number * StripLength
	to = min(to, b.length)
	if number < 0 || first >= to || first+StripLength <= from {
		return
	}
	mask := ^uint64(0)
	if from > first {
		mask &= ^uint64(0) << (from - first)
	}
	if end := first + StripLength; end > to {
		mask &= ^uint64(0) >> (end - to)
	}
	for int64(len(b.strips)) <= number {
		b.strips = append(b.strips, Strip{})
	}
	for i := range s {
		b.strips[number][i] |= s[i] & mask
	}
	b.begins = nil
}

// Length is the number of messages.
func (b *Branch) Length() int64 { return b.length }

// starts returns the positions at which turns begin.
func (b *Branch) starts() []int64 {
	if b.begins != nil {
		return b.begins
	}
	b.begins = []int64{}
	replied := true // what comes before the first prompt does not join it
	for i := range b.strips {
		prompts, replies := b.strips[i][0], b.strips[i][1]
		for left := prompts | replies; left != 0; left &= left - 1 {
			bit := bits.TrailingZeros64(left)
			switch at := int64(i)*StripLength + int64(bit); {
			case replies>>bit&1 != 0:
				replied = true
			case replied:
				b.begins, replied = append(b.begins, at), false
			}
		}
	}
	return b.begins
}

// Turns is the number of turns that begin with a prompt.
func (b *Branch) Turns() int64 { return int64(len(b.starts())) }

// Turn returns the positions of the turn with a number, from 1, without the end. Turn 0 is what comes before the first
// prompt; it may be empty.
func (b *Branch) Turn(number int64) (from, to int64) {
	all := b.starts()
	if number > 0 && number <= int64(len(all)) {
		from = all[number-1]
	} else if number != 0 {
		return b.length, b.length
	}
	if to = b.length; number < int64(len(all)) {
		to = all[number]
	}
	return from, to
}

// TurnAt returns the number of the turn that has a position.
func (b *Branch) TurnAt(position int64) int64 {
	all := b.starts()
	return int64(sort.Search(len(all), func(i int) bool { return all[i] > position }))
}

// Map counts marks in stretches of equal length.
type Map struct {
	Size   int64              // of a stretch, in messages; the last one may be shorter
	Counts [MarkCount][]int64 // of each mark, for each stretch
}

// Map counts the marks in at most so many stretches.
func (b *Branch) Map(stretches int) Map {
	stretches = max(stretches, 1)
	m := Map{Size: max((b.length+int64(stretches)-1)/int64(stretches), 1)}
	n := (b.length + m.Size - 1) / m.Size
	for mark := range m.Counts {
		m.Counts[mark] = make([]int64, n)
		for i := range b.strips {
			m.count(m.Counts[mark], int64(i)*StripLength, b.strips[i][mark])
		}
	}
	return m
}

// count counts the bits of a strip that begins at a position.
func (m *Map) count(into []int64, first int64, strip uint64) {
	for strip != 0 {
		stretch := (first + int64(bits.TrailingZeros64(strip))) / m.Size
		within := ^uint64(0) // of the stretch
		if end := (stretch+1)*m.Size - first; end < StripLength {
			within >>= StripLength - end
		}
		into[stretch] += int64(bits.OnesCount64(strip & within))
		strip &^= within
	}
}

// Breaks returns the positions of compactions, the newest so many.
func (b *Branch) Breaks(most int) (all []int64) {
	for i := len(b.strips) - 1; i >= 0 && len(all) < most; i-- {
		for left := b.strips[i][MarkCount-1]; left != 0 && len(all) < most; {
			bit := bits.Len64(left) - 1
			left &^= 1 << bit
			all = append(all, int64(i)*StripLength+int64(bit))
		}
	}
	slices.Reverse(all)
	return all
}
