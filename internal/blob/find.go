package blob

import "github.com/google/uuid"

// Policy decides which strings of a message move to blobs.
type Policy struct {
	// Text is the least length of a text that moves, in bytes of UTF-8: 0 moves every string value, a negative number
	// none. Base64 data of 256 characters or more moves regardless of Text. A UUID never moves: messages name others by
	// it, and a program that looks for these need not resolve references.
	Text int64
}

// keeps reports whether externalising the string of a reference would give the same reference. A short text may state
// that another string is binary, so its reference is resolved.
func (p Policy) keeps(ref Ref) bool {
	return ref.Encoding != "" || p.Text >= 0 && int64(len(ref.Prefix))+ref.Size >= max(p.Text, binaryFloor)
}

// moves reports whether a text that is not binary data moves.
func (p Policy) moves(text []byte) bool {
	return p.Text >= 0 && int64(len(text)) >= p.Text && (len(text) != 36 || uuid.Validate(string(text)) != nil)
}

// item is a place in a message that may change.
type item struct {
	start, end int // of the string, with quotation marks
	kind       itemKind
	place      place
	raised     bool // passed on to the enclosing object
	before     int  // the previous candidate of the same object, counted from 1
	mediaStart int
	mediaEnd   int
}

type itemKind uint8

const (
	itemPassed itemKind = iota
	itemName            // a name like $blob, which the writer escapes
	itemText            // a text that may be long enough
	itemBinary          // probably base64, otherwise a text
	itemPlace           // an empty string for an attachment
	itemKept            // a reference that stays
)

// holder is an open object or array.
type holder struct {
	candidates int // its last string that may be binary, counted from 1
	evidence   evidence
}

// find lists, in order, the places of a message that may change. It makes one pass. Whether a string is binary may
// depend on later members, so find decides at the end of the object. It recognises the references in kept, which body
// already contains, by their offsets; others are a framework's own text.
func find(body []byte, policy Policy, places *places, kept []Ref) (items []item, err error) {
	s := newScanner(body)
	defer s.release()
	var firstHolders [32]holder
	holders := firstHolders[:0]
	for {
		switch s.next() {
		case tokenEnd:
			if s.bad {
				return nil, s.err()
			}
			return items, places.err()
		case tokenObject, tokenArray:
			if len(kept) > 0 && s.start == kept[0].Offset {
				kept = kept[1:]
				start := s.start
				s.skip()
				items = append(items, item{start: start, end: s.end, kind: itemKept})
				continue
			}
			holders = append(holders, holder{})
		case tokenClose:
			last := len(holders) - 1
			if last > 0 {
				settle(items, &holders[last], &holders[last-1])
			} else {
				settle(items, &holders[last], nil)
			}
			holders = holders[:last]
		case tokenName:
			if markers(s.inside()) > 0 {
				items = append(items, item{start: s.start, end: s.end, kind: itemName})
			}
		case tokenString:
			it := item{start: s.start, end: s.end}
			inside := s.inside()
			if places.at(s) {
				it.kind = itemPlace
				items = append(items, it)
				continue
			}
			// Decoded text is never longer than its spelling.
			if policy.Text >= 0 && int64(len(inside)) >= policy.Text {
				it.kind = itemText
			}
			name, direct := s.member()
			if len(inside) >= binaryFloor {
				it.place = placeOf(name)
				if looksLikeURI(inside) {
					it.kind, it.place = itemBinary, placeOther
				}
			}
			if direct {
				holders[len(holders)-1].evidence.note(name, body, s.start+1, s.end-1)
			}
			if it.place != placeOther {
				h := &holders[len(holders)-1]
				it.before = h.candidates
				h.candidates = len(items) + 1
			}
			if it.kind != itemPassed || it.place != placeOther {
				items = append(items, it)
			}
		}
	}
}

// settle decides about the candidates of a closed object. It passes undecided ones on to the enclosing object, once:
// Bedrock has {"format": …, "source": {"bytes": …}}.
func settle(items []item, h, around *holder) {
	for n := h.candidates; n > 0; {
		it := &items[n-1]
		at := n
		n = it.before
		if h.evidence.proves(it.place) {
			it.kind = itemBinary
			it.mediaStart, it.mediaEnd = h.evidence.start, h.evidence.end
		} else if !it.raised && around != nil {
			it.raised = true
			it.before = around.candidates
			around.candidates = at
		}
	}
}

// member returns the name, as spelled, of the member with the scanner's value. direct reports whether the value is the
// member's own and not an element of it.
func (s *scanner) member() (name []byte, direct bool) {
	n := len(s.stack)
	if n == 0 {
		return nil, false
	}
	l := &s.stack[n-1]
	if !l.object {
		if n == 1 || !s.stack[n-2].object {
			return nil, false
		}
		l = &s.stack[n-2]
	}
	return s.b[l.nameStart+1 : l.nameEnd-1], s.stack[n-1].object
}
