package blob

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Resolve puts payloads back into a stored message. get returns each payload; Resolve does not keep it. If get fails,
// or returns a payload of another size, the reference stays. err then joins an [UnavailableError] for each such place;
// everything else is resolved. To keep a reference without a failure, get returns [ErrKeep]. A body in which references
// stayed must not be passed to [Externalise].
//
// The results of get bound the memory, each payload as often as the message refers to it. A caller that reads untrusted
// messages checks [BodySize] first, or streams with [ResolveTo]. If there is nothing to resolve, body is stored itself.
func Resolve(stored []byte, get func(Ref) ([]byte, error)) (body []byte, err error) {
	body, _, err = resolve(stored, get)
	return body, err
}

// ErrKeep is the result of get in [Resolve] for a reference that must stay.
var ErrKeep = errors.New("the reference is kept")

// resolve also returns the kept references, with their offsets in the body.
func resolve(stored []byte, get func(Ref) ([]byte, error)) (body []byte, kept []Ref, err error) {
	var out []byte
	changed, err := rewriteRefs(stored, func(piece []byte) error {
		if len(piece) < len(stored) { // otherwise nothing changes
			out = append(out, piece...)
		}
		return nil
	}, func(ref *Ref) error {
		payload, err := fetch(*ref, get)
		if err == ErrKeep { //nolint:errorlint // an error that wraps it is a failure
			ref.Offset = len(out)
			kept = append(kept, *ref)
		}
		if err == nil {
			out = ref.restore(slices.Grow(out, ref.room(payload)+len(stored)-ref.end), payload)
		}
		return err
	})
	if errors.Is(err, ErrMalformed) {
		return nil, nil, err
	}
	if changed {
		stored = out
	}
	return stored, kept, err
}

// rewriteRefs walks a stored message. It passes the pieces of the body to write, in order. For each reference it calls
// restore, which writes the string; if restore fails, the reference stays. The error joins an [UnavailableError] for
// each failure other than [ErrKeep]. An error of write ends the walk; restore passes it on as a [writeError].
func rewriteRefs(stored []byte, write func(piece []byte) error, restore func(*Ref) error) (changed bool, err error) {
	s := newScanner(stored)
	defer s.release()
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
				return false, s.err()
			}
			if err := write(stored[done:ref.Offset]); err != nil {
				return false, err
			}
			done = ref.Offset
			err := restore(&ref)
			t = tokenClose
			var failed *writeError
			switch {
			case err == nil:
				done, changed = ref.end, true
			case errors.As(err, &failed):
				return false, failed.err
			case err != ErrKeep: //nolint:errorlint // an error that wraps it is a failure
				ref.Path = s.pointer()
				unavailable = append(unavailable, &UnavailableError{ref, err})
			}
		default:
			if markers(s.inside()) > 1 && stored[s.start+1] == '$' {
				if err := write(stored[done : s.start+1]); err != nil {
					return false, err
				}
				done, changed = s.start+2, true
			}
		}
	}
	if s.bad {
		return false, s.err()
	}
	if err := write(stored[done:]); err != nil {
		return false, err
	}
	return changed, errors.Join(unavailable...)
}

// writeError is an error of the body's writer and not of a payload.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }

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
		return nil, fmt.Errorf("%w: longer than the %d bytes that the reference states", ErrDamaged, ref.Size)
	}
	if err != nil {
		return nil, err
	}
	if int64(len(payload)) != ref.Size {
		return nil, fmt.Errorf("%w: %d bytes, but the reference states %d", ErrDamaged, len(payload), ref.Size)
	}
	if ref.Encoding == "" && !utf8.Valid(payload) {
		return nil, fmt.Errorf("%w: the payload is not UTF-8 text", ErrReference)
	}
	return payload, nil
}

// ErrReference is wrapped by errors about references that no store can resolve.
var ErrReference = errors.New("malformed reference")

// room returns the usual length of the string for a payload.
func (r *Ref) room(payload []byte) int {
	n := len(payload) + len(payload)/16 // most texts need few escapes
	if codec := r.Encoding.codec(); codec != nil {
		n = codec.EncodedLen(len(payload))
	}
	return len(`""`) + len(r.Prefix) + n
}

// restore appends the string of the reference.
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
