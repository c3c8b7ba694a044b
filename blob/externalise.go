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
	items, err := find(body, policy)
	if err != nil || len(items) == 0 {
		return body, nil, err
	}
	w := writer{body: body, policy: policy, put: put}
	for _, it := range items {
		if err := w.item(it); err != nil {
			return nil, nil, err
		}
	}
	if w.done == 0 {
		return body, nil, nil
	}
	return append(w.out, body[w.done:]...), w.refs, nil
}

// Reexternalise takes a stored message to another policy, or one that was edited by hand back to its own. It
// resolves it and begins again, so the result is that of [Externalise] for the message as it was. Where a
// payload is unavailable it fails, with an error that wraps an [UnavailableError].
func Reexternalise(stored []byte, policy Policy, get func(Ref) ([]byte, error), put func(payload []byte) (Sum, error)) ([]byte, []Ref, error) {
	body, err := Resolve(stored, get)
	if err != nil {
		return nil, nil, err
	}
	return Externalise(body, policy, put)
}

// writer makes the stored message.
type writer struct {
	body   []byte
	policy Policy
	put    func([]byte) (Sum, error)
	out    []byte
	done   int // bytes of body that are in out
	refs   []Ref
	text   []byte // room for what is decoded
	binary []byte
}

func (w *writer) item(it item) error {
	if it.kind == itemName {
		w.out = append(append(w.out, w.body[w.done:it.start+1]...), '$')
		w.done = it.start + 1
		return nil
	}
	if it.kind == itemPassed {
		return nil
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
	w.out = append(w.out, w.body[w.done:it.start]...)
	ref.Sum, ref.Size, ref.Offset = sum, int64(len(payload)), len(w.out)
	w.out = ref.appendTo(w.out)
	ref.end = len(w.out)
	w.done = it.end
	w.refs = append(w.refs, ref)
	return nil
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
