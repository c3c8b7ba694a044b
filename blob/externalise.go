package blob

import (
	"fmt"
	"unicode/utf8"
)

// Policy says which strings of a message are moved to blobs.
type Policy struct {
	// Text is the least length of a text that is moved, in bytes of UTF-8: 0 moves every string value,
	// a negative number none. Base64 data of 256 characters or more is moved whatever Text is.
	Text int64
}

// Externalise moves strings of a message to blobs: put is called with each payload in order, and must not keep it.
// stored is the message with references in their place, from which [Resolve] makes body again, byte for byte. A
// string that could not be spelled the same again stays.
//
// body must be valid JSON; what in it looks like a reference is escaped. Where nothing is moved stored is
// body itself. To take a stored message to another policy, use [Reexternalise].
func Externalise(body []byte, policy Policy, put func(payload []byte) (Sum, error)) (stored []byte, refs []Ref, err error) {
	w := writer{body: body, policy: policy, put: put}
	return w.write()
}

// Attach is [Externalise] for a message into which payloads are put that do not pass through it: for each RFC 6901
// pointer to an empty string of body, of at most 1 KiB, what returns the reference that stands there in stored. Of
// the reference it takes sum, size, media type, encoding and prefix. Pointers are looked at before any payload: where
// one leads to no empty string, or to several since a name is there twice, the error wraps [ErrPlace].
func Attach(body []byte, policy Policy, put func(payload []byte) (Sum, error), attached map[string]func() (Ref, error)) (stored []byte, refs []Ref, err error) {
	w := writer{body: body, policy: policy, put: put, places: places{refs: attached}}
	return w.write()
}

// Reexternalise takes a stored message to another policy, or one that was edited by hand back to its own. References to
// binary payloads, and to texts that the policy moves, stay as they are, and get is not asked for their payloads;
// others are resolved and looked at again. So the result is that of [Externalise] for the message as it was, but for
// binary payloads that were attached. Where a payload is unavailable it fails, with an error that wraps an
// [UnavailableError].
func Reexternalise(stored []byte, policy Policy, get func(Ref) ([]byte, error), put func(payload []byte) (Sum, error)) ([]byte, []Ref, error) {
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

// keeps reports whether what a reference stands for would become the same reference again. A short text may say of
// another string that it is binary, so it is looked at.
func (p Policy) keeps(ref Ref) bool {
	return ref.Encoding != "" || p.Text >= 0 && int64(len(ref.Prefix))+ref.Size >= max(p.Text, binaryFloor)
}

// writer makes the stored message.
type writer struct {
	body   []byte
	policy Policy
	put    func([]byte) (Sum, error)
	places places
	kept   []Ref // that stand in body, in order
	out    []byte
	done   int // bytes of body that are in out
	refs   []Ref
	text   []byte // room for what is decoded
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

// payload returns what to put for a string's text, and notes in ref how to make the text of it again.
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
	return text, w.policy.Text >= 0 && int64(len(text)) >= w.policy.Text
}
