package blob

import "fmt"

// Place puts references in the place of empty strings in a stored message, by RFC 6901 pointers to them: for payloads
// that are in a store already and too large to pass through a message. Each pointer must lead to an empty string;
// the error else wraps [ErrReference]. Of a Ref it takes sum, size, media type, encoding and prefix.
func Place(stored []byte, refs map[string]Ref) ([]byte, error) {
	s := newScanner(stored)
	defer s.release()
	var out []byte
	done, placed := 0, 0
	for t := s.next(); t != tokenEnd; t = s.next() {
		if t != tokenString || s.end-s.start != len(`""`) {
			continue
		}
		ref, ok := refs[s.pointer()]
		if !ok {
			continue
		}
		ref.spelling = 0
		out = ref.appendTo(append(out, stored[done:s.start]...))
		done = s.end
		placed++
	}
	if err := s.err(); err != nil {
		return nil, err
	}
	if placed != len(refs) {
		return nil, fmt.Errorf("%w: %d of %d pointers lead to an empty string", ErrReference, placed, len(refs))
	}
	return append(out, stored[done:]...), nil
}
