package blob

import (
	"bytes"
	"errors"
	"sync"
)

// ErrMalformed is wrapped by errors about a message that is not JSON. The caller must ensure validity: the scanner
// detects only faults that stop it.
var ErrMalformed = errors.New("malformed message")

type token uint8

const (
	tokenEnd    token = iota // end of the message, or of its scannable part
	tokenName                // a member's name
	tokenString              // a string value
	tokenObject              // an object begins
	tokenArray               // an array begins
	tokenClose               // an object or array ends
)

// scanner walks JSON from left to right, without recursion, and stops at the tokens above. It skips numbers and
// literals.
type scanner struct {
	b     []byte
	pos   int // where to continue
	start int // of the token; for a string, with its quotation marks
	end   int
	stack []level
	bad   bool
}

// level is an open object or array.
type level struct {
	object    bool
	wantName  bool // the next string of an object is a name
	nameStart int  // of the current member, with quotation marks
	nameEnd   int
	index     int // of the current element
}

// The pool keeps the scanners' stacks: scanning a message without anything to move allocates nothing.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

func newScanner(b []byte) *scanner {
	s := scanners.Get().(*scanner)
	*s = scanner{b: b, stack: s.stack[:0]}
	return s
}

func (s *scanner) release() {
	if s.b = nil; cap(s.stack) <= 256 {
		scanners.Put(s)
	}
}

func (s *scanner) next() token {
	for s.pos < len(s.b) {
		at := s.pos
		s.pos++
		switch s.b[at] {
		case '"':
			end := stringEnd(s.b, at)
			if end < 0 {
				return s.fail()
			}
			s.start, s.end, s.pos = at, end, end
			if top := s.top(); top != nil && top.wantName {
				top.wantName = false
				top.nameStart, top.nameEnd = at, end
				return tokenName
			}
			return tokenString
		case '{', '[':
			if top := s.top(); top != nil && top.wantName {
				return s.fail()
			}
			s.start, s.end = at, at+1
			object := s.b[at] == '{'
			s.stack = append(s.stack, level{object: object, wantName: object})
			if object {
				return tokenObject
			}
			return tokenArray
		case '}', ']':
			top := s.top()
			if top == nil || top.object != (s.b[at] == '}') {
				return s.fail()
			}
			s.start, s.end = at, at+1
			s.stack = s.stack[:len(s.stack)-1]
			return tokenClose
		case ',':
			if top := s.top(); top != nil {
				top.wantName = top.object
				top.index++
			}
		}
	}
	s.bad = s.bad || len(s.stack) > 0
	return tokenEnd
}

func (s *scanner) top() *level {
	if len(s.stack) == 0 {
		return nil
	}
	return &s.stack[len(s.stack)-1]
}

func (s *scanner) fail() token {
	s.bad, s.pos = true, len(s.b)
	return tokenEnd
}

// err returns nil if the scan reached its end without a fault.
func (s *scanner) err() error {
	if s.bad {
		return ErrMalformed
	}
	return nil
}

// inside returns the scanner's string, without quotation marks.
func (s *scanner) inside() []byte { return s.b[s.start+1 : s.end-1] }

// skip moves past the object or array that has just begun.
func (s *scanner) skip() {
	for depth := len(s.stack); len(s.stack) >= depth; {
		if s.next() == tokenEnd {
			return
		}
	}
}

// stringEnd returns the end of the string that begins at a quotation mark, or -1.
func stringEnd(b []byte, start int) int {
	for i := start + 1; ; {
		q := bytes.IndexByte(b[i:], '"')
		if q < 0 {
			return -1
		}
		i += q
		back := i
		for b[back-1] == '\\' {
			back--
		}
		if i++; (i-1-back)%2 == 0 {
			return i
		}
	}
}

// pointer returns the RFC 6901 pointer of the current or last value, or "" if it would be longer than maxPointer.
func (s *scanner) pointer() string {
	var p []byte
	for i := range s.stack {
		l := &s.stack[i]
		p = append(p, '/')
		if !l.object {
			p = appendInt(p, int64(l.index))
		} else {
			name, _, ok := decode(nil, s.b[l.nameStart+1:l.nameEnd-1])
			if !ok {
				name = s.b[l.nameStart+1 : l.nameEnd-1]
			}
			name = bytes.ReplaceAll(name, []byte("~"), []byte("~0"))
			p = append(p, bytes.ReplaceAll(name, []byte("/"), []byte("~1"))...)
		}
		if len(p) > maxPointer {
			return ""
		}
	}
	return string(p)
}

// maxPointer keeps the pointers of many deep references from taking more memory than the message.
const maxPointer = 1 << 10
