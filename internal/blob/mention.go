package blob

import (
	"bytes"
	"errors"
	"io"
	"iter"
)

// Mentions yields the name of each blob that b may refer to. It is the one rule for keeping or removing blobs, and it
// is generous: b may be damaged or incomplete, a reference may be anywhere in its object, and white space and escapes
// follow JSON. [Refs] is the strict rule, for putting payloads back. Mentions finds every reference that Refs finds.
func Mentions(b []byte) iter.Seq[Sum] {
	return func(yield func(Sum) bool) {
		if !bytes.Contains(b, []byte("blob")) && !bytes.Contains(b, []byte(`\u00`)) {
			return
		}
		for sum, err := range MentionsIn(bytes.NewReader(b)) {
			if err != nil || !yield(sum) {
				return
			}
		}
	}
}

// Count returns how many references a stored message may hold. The envelope and the row of a message record it, so that
// a search for references does not skip the message.
func Count(stored []byte) (n int) {
	for range Mentions(stored) {
		n++
	}
	return n
}

// MentionsIn is Mentions for a stream of any length. A read error ends the iteration.
func MentionsIn(r io.Reader) iter.Seq2[Sum, error] {
	return func(yield func(Sum, error) bool) {
		mark := []byte(`"` + refName + `":"`)
		var m mentions
		raw := make([]byte, mentionPiece)
		for {
			n, err := r.Read(raw)
			m.read(raw[:n])
			rest := m.text
			for {
				i := bytes.Index(rest, mark)
				if i < 0 || len(rest)-i < len(mark)+hexLen {
					break // the rest of a mark at the end is still to come
				}
				rest = rest[i+len(mark)-1:] // the last quotation mark may begin another mark
				if sum, perr := ParseSum(string(rest[1:][:hexLen])); perr == nil && !yield(sum, nil) {
					return
				}
			}
			// A mention that begins in this piece may end in the next.
			m.text = append(m.text[:0], rest[max(len(rest)-len(mark)-hexLen+1, 0):]...)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Sum{}, err)
				return
			}
		}
	}
}

const mentionPiece = 64 << 10 // bytes of a stream per read

// mentions normalises JSON that arrives in pieces: no white space, and no escapes in names.
type mentions struct {
	text []byte
	tail [6]byte // an incomplete escape
	n    int     // the length of its part so far
}

func (m *mentions) read(b []byte) {
	for _, c := range b {
		switch {
		case m.n > 0:
			m.escaped(c)
		case c == '\\':
			m.tail[0], m.n = c, 1
		case !isSpace(c):
			m.text = append(m.text, c)
		}
	}
}

// escaped continues an escape. An escape stays as it is unless it stands for a character of a name.
func (m *mentions) escaped(c byte) {
	m.tail[m.n] = c
	m.n++
	if m.n == 2 && c == 'u' || m.n > 2 && m.n < len(m.tail) && c != '"' && c != '\\' {
		return
	}
	if r := hex4(m.tail[:m.n]); r == '$' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
		m.text = append(m.text, byte(r))
	} else {
		m.text = append(m.text, m.tail[:m.n]...)
	}
	m.n = 0
}
