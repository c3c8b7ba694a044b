package index

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
