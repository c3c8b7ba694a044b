package index

import (
	"cmp"
	"slices"
	"sort"
)

// Spans are positions of a line, in order.
type Spans []Span

// Span is the range of positions [From, To).
type Span struct{ From, To int64 }

// Add adds a position after all others.
func (s *Spans) Add(position int64) {
	if n := len(*s); n > 0 && (*s)[n-1].To == position {
		(*s)[n-1].To++
		return
	}
	*s = append(*s, Span{position, position + 1})
}

// Has reports whether s contains a position.
func (s Spans) Has(position int64) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].To > position })
	return i < len(s) && s[i].From <= position
}

// Len returns the number of positions.
func (s Spans) Len() (n int64) {
	for _, span := range s {
		n += span.To - span.From
	}
	return n
}

// With returns the positions of s and others.
func (s Spans) With(others Spans) Spans {
	all := slices.Concat(s, others)
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	out := all[:0]
	for _, span := range all {
		if n := len(out); n > 0 && span.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, span.To)
			continue
		}
		out = append(out, span)
	}
	return out
}
