package blob

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Resolve puts payloads back into a stored message: get returns each, and what it returns is not kept. Where
// get fails, or returns something of another size, the reference stays; err then joins an
// [UnavailableError] for each such place, and everything else is resolved. With [ErrKeep] get says that the reference
// shall stay, which is no failure. A body in which references stayed must not be given to [Externalise].
//
// Memory is bounded by what get returns, each payload as often as it is referred to: who reads messages of strangers
// must let get count. Where there is nothing to do body is stored itself.
func Resolve(stored []byte, get func(Ref) ([]byte, error)) (body []byte, err error) {
	body, _, err = resolve(stored, get)
	return body, err
}

// ErrKeep is what the get of [Resolve] returns for a reference that shall stay.
var ErrKeep = errors.New("the reference stays")

// resolve also returns the references that shall stay, with their places in the body.
func resolve(stored []byte, get func(Ref) ([]byte, error)) (body []byte, kept []Ref, err error) {
	s := newScanner(stored)
	defer s.release()
	var out []byte
	var unavailable []error
	done, opened := 0, 0
	for before, t := tokenEnd, s.next(); t != tokenEnd; before, t = t, s.next() {
		switch {
		case t == tokenObject:
			opened = s.start
		case t != tokenName:
		case s.atReference(before):
			ref := s.reference(opened)
			if s.bad {
				return nil, nil, s.err()
			}
			payload, err := fetch(ref, get)
			if err == ErrKeep { //nolint:errorlint // what wraps it is a failure
				ref.Offset += len(out) - done
				kept = append(kept, ref)
				t = tokenClose
				continue
			}
			if err != nil {
				ref.Path = s.pointer()
				unavailable = append(unavailable, &UnavailableError{ref, err})
				t = tokenClose
				continue
			}
			out = append(out, stored[done:ref.Offset]...)
			out = ref.restore(out, payload)
			done = ref.end
			t = tokenClose
		default:
			if markers(s.inside()) > 1 && stored[s.start+1] == '$' {
				out = append(out, stored[done:s.start+1]...)
				done = s.start + 2
			}
		}
	}
	if s.bad {
		return nil, nil, s.err()
	}
	if done > 0 {
		stored = append(out, stored[done:]...)
	}
	return stored, kept, errors.Join(unavailable...)
}

// Refs lists the references of a stored message in order, those with a Problem included.
func Refs(stored []byte) (refs []Ref, err error) {
	s := newScanner(stored)
	defer s.release()
	opened := 0
	for before, t := tokenEnd, s.next(); t != tokenEnd; before, t = t, s.next() {
		if t == tokenObject {
			opened = s.start
		} else if t == tokenName && s.atReference(before) {
			ref := s.reference(opened)
			if s.bad {
				return nil, s.err()
			}
			ref.Path = s.pointer()
			refs = append(refs, ref)
			t = tokenClose
		}
	}
	return refs, s.err()
}

func fetch(ref Ref, get func(Ref) ([]byte, error)) ([]byte, error) {
	if ref.Problem != "" {
		return nil, fmt.Errorf("%w: %s", ErrReference, ref.Problem)
	}
	payload, err := get(ref)
	if errors.Is(err, vfs.ErrTooLarge) {
		return nil, fmt.Errorf("%w: more bytes than the %d that the reference says", ErrDamaged, ref.Size)
	}
	if err != nil {
		return nil, err
	}
	if int64(len(payload)) != ref.Size {
		return nil, fmt.Errorf("%w: %d bytes, the reference says %d", ErrDamaged, len(payload), ref.Size)
	}
	if ref.Encoding == "" && !utf8.Valid(payload) {
		return nil, fmt.Errorf("%w: the payload is no text", ErrReference)
	}
	return payload, nil
}

// ErrReference is wrapped by the errors of references that cannot be resolved whatever the store holds.
var ErrReference = errors.New("malformed reference")

// restore appends the string that the reference stands for.
func (r *Ref) restore(b, payload []byte) []byte {
	b = append(b, '"')
	b = r.spelling.spell(b, []byte(r.Prefix))
	switch codec := r.Encoding.codec(); {
	case codec == nil:
		b = r.spelling.spell(b, payload)
	case r.spelling == 0:
		b = codec.AppendEncode(b, payload) // base64 needs no escape
	default:
		b = r.spelling.spell(b, codec.AppendEncode(nil, payload))
	}
	return append(b, '"')
}
