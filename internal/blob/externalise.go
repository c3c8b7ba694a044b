package blob

import (
	"fmt"
	"unicode/utf8"
)

// Externalise moves strings of a message to blobs. It calls put with each payload in order; put must not keep it.
// stored is the message with references in place of the strings, from which [Resolve] restores body byte for byte. A
// string that could not be spelled the same again stays.
//
// body must be valid JSON. Externalise escapes anything in it that looks like a reference. If no string moves, stored
// is body itself. To apply another policy to a stored message, use [Reexternalise].
func Externalise(body []byte, policy Policy, put func(payload []byte) (Sum, error)) (stored []byte, refs []Ref, err error) {
	w := writer{body: body, policy: policy, put: put}
	return w.write()
}

// Attach is [Externalise] for payloads that do not pass through the message. attached maps RFC 6901 pointers of at most
// 1 KiB to functions. Each pointer names an empty string of body; its function returns the reference that replaces it
// in stored. Attach takes sum, size, media type, encoding and prefix of it. Attach checks the pointers before any
// payload. The error wraps [ErrPlace] if a pointer leads to no empty string, or to several because a name occurs twice.
func Attach(
	body []byte,
	policy Policy,
	put func(payload []byte) (Sum, error),
	attached map[string]func() (Ref, error),
) (stored []byte, refs []Ref, err error) {
	w := writer{body: body, policy: policy, put: put, places: places{refs: attached}}
	return w.write()
}

// Reexternalise applies another policy to a stored message, or its own to one edited by hand. References to binary
// payloads, and to texts that the policy moves, stay, and Reexternalise does not get their payloads. It resolves other
// references and examines their strings again. So the result equals that of [Externalise] for the original message,
// except for attached binary payloads. If a payload is unavailable, the error wraps an [UnavailableError].
func Reexternalise(
	stored []byte,
	policy Policy,
	get func(Ref) ([]byte, error),
	put func(payload []byte) (Sum, error),
) ([]byte, []Ref, error) {
	body, kept, err := resolve(stored, func(ref Ref) ([]byte, error) {
		if policy.keeps(ref) {
			return nil, ErrKeep
		}
		return get(ref)
	})
	if err != nil {
		return nil, nil, err
	}
	w := writer{body: body, policy: policy, put: put, kept: kept}
	return w.write()
}

// writer builds the stored message.
type writer struct {
	body   []byte
	policy Policy
	put    func([]byte) (Sum, error)
	places places
	kept   []Ref // references that stay in body, in order
	out    []byte
	done   int // bytes of body already copied to out
	refs   []Ref
	text   []byte // buffer for decoded text
	binary []byte
}

func (w *writer) write() (stored []byte, refs []Ref, err error) {
	items, err := find(w.body, w.policy, &w.places, w.kept)
	if err != nil {
		return nil, nil, err
	}
	for _, it := range items {
		if err := w.item(it); err != nil {
			return nil, nil, err
		}
	}
	if w.done == 0 {
		return w.body, w.refs, nil
	}
	return append(w.out, w.body[w.done:]...), w.refs, nil
}

func (w *writer) item(it item) error {
	switch it.kind {
	case itemPassed:
		return nil
	case itemName:
		w.out = append(append(w.out, w.body[w.done:it.start+1]...), '$')
		w.done = it.start + 1
		return nil
	case itemKept:
		ref := w.kept[0]
		w.kept = w.kept[1:]
		ref.Offset = len(w.out) + it.start - w.done
		ref.end = ref.Offset + it.end - it.start
		w.refs = append(w.refs, ref)
		return nil
	case itemPlace:
		ref, err := w.places.next()
		if err == nil {
			w.reference(it, ref)
		}
		return err
	}
	inside := w.body[it.start+1 : it.end-1]
	text, seems, ok := decode(w.text[:0], inside)
	if !ok {
		return nil
	}
	if len(text) < len(inside) {
		w.text = text
	}
	var ref Ref
	payload, ok := w.payload(it, text, &ref)
	if !ok {
		return nil
	}
	if ref.spelling, ok = respell(seems, text, inside); !ok {
		return nil
	}
	sum, err := w.put(payload)
	if err != nil {
		return fmt.Errorf("payload of %d bytes: %w", len(payload), err)
	}
	ref.Sum, ref.Size = sum, int64(len(payload))
	w.reference(it, ref)
	return nil
}

// reference writes a reference in the place of a string.
func (w *writer) reference(it item, ref Ref) {
	w.out = append(w.out, w.body[w.done:it.start]...)
	ref.Offset = len(w.out)
	w.out = ref.appendTo(w.out)
	ref.end = len(w.out)
	w.done = it.end
	w.refs = append(w.refs, ref)
}

// payload returns the payload for a string's text and records in ref how to restore the text.
func (w *writer) payload(it item, text []byte, ref *Ref) ([]byte, bool) {
	if it.kind == itemBinary && len(text) >= binaryFloor {
		prefix, mediaType := uriPrefix(text)
		if payload, encoding, ok := canonical(w.binary[:0], text[len(prefix):]); ok {
			w.binary = payload
			if prefix == nil {
				mediaType, _, _ = decode(nil, w.body[it.mediaStart:it.mediaEnd])
			}
			if utf8.Valid(mediaType) {
				ref.MediaType = string(mediaType)
			}
			ref.Prefix, ref.Encoding = string(prefix), encoding
			return payload, true
		}
	}
	return text, w.policy.moves(text)
}
