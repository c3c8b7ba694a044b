package blob

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

// atOnce is the size, in bytes, up to which a stream holds a payload in memory.
const atOnce = 1 << 20

// ResolveTo is [Resolve] that writes the body to w. open returns each payload as a stream that verifies its content at
// its end, as [Store.Open] does. ResolveTo holds payloads of up to 1 MiB in memory. It opens a larger one twice: to
// prove it, then to write it. If the proof fails, the reference stays; if the second read fails, the body ends there.
func ResolveTo(w io.Writer, stored []byte, open func(Ref) (io.ReadCloser, error)) error {
	_, err := rewriteRefs(stored, func(piece []byte) error {
		_, err := w.Write(piece)
		return err
	}, func(ref *Ref) error {
		if ref.Problem != "" {
			return fmt.Errorf("%w: %s", ErrReference, ref.Problem)
		}
		var held bytes.Buffer
		var err error
		if ref.Size <= atOnce {
			err = ref.proveTo(&held, open)
		} else {
			err = ref.proveTo(io.Discard, open)
		}
		if err != nil {
			return err
		}
		payload := io.NopCloser(&held)
		if ref.Size > atOnce {
			payload, err = open(*ref)
		}
		if err == nil {
			err = ref.restoreTo(w, payload)
			err = errors.Join(err, payload.Close())
		}
		if err != nil {
			return &writeError{err}
		}
		return nil
	})
	return err
}

// proveTo copies a payload to w, up to its end. Its error states why the payload cannot replace the reference.
func (r *Ref) proveTo(w io.Writer, open func(Ref) (io.ReadCloser, error)) error {
	payload, err := open(*r)
	if err != nil {
		return err
	}
	defer payload.Close() //nolint:errcheck // nothing was written
	var text textProof
	if r.Encoding == "" {
		w = io.MultiWriter(w, &text)
	}
	n, err := io.Copy(w, io.LimitReader(payload, r.Size))
	if err == nil && n == r.Size {
		// Only the read after the last byte proves the payload.
		var more int
		if more, err = io.ReadFull(payload, make([]byte, 1)); more > 0 {
			return fmt.Errorf("%w: longer than the %d bytes that the reference states", ErrDamaged, r.Size)
		} else if isEnd(err) {
			err = nil
		}
	}
	switch {
	case err != nil:
		return err
	case n != r.Size:
		return fmt.Errorf("%w: %d bytes, but the reference states %d", ErrDamaged, n, r.Size)
	case text.bad || len(text.open) > 0:
		return fmt.Errorf("%w: the payload is not UTF-8 text", ErrReference)
	}
	return nil
}

// restoreTo is restore as a stream.
func (r *Ref) restoreTo(w io.Writer, payload io.Reader) error {
	out := &spellWriter{w: w, spelling: r.spelling}
	_, err := w.Write(r.spelling.spell([]byte{'"'}, []byte(r.Prefix)))
	if err != nil {
		return err
	}
	if codec := r.Encoding.codec(); codec != nil {
		e := base64.NewEncoder(codec, out)
		if _, err = io.Copy(e, payload); err == nil {
			err = e.Close()
		}
	} else {
		_, err = io.Copy(out, payload)
	}
	if err == nil {
		_, err = w.Write([]byte{'"'})
	}
	return err
}

// spellWriter writes a text as the inside of a JSON string. A piece of the valid UTF-8 may end within a character.
type spellWriter struct {
	w        io.Writer
	spelling spelling
	open     []byte // the beginning of a character
	buf      []byte
}

func (s *spellWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		piece := p[:min(len(p), 16<<10)]
		p = p[len(piece):]
		whole, open := splitText(append(s.open, piece...))
		s.buf = s.spelling.spell(s.buf[:0], whole)
		s.open = append([]byte(nil), open...)
		if _, err := s.w.Write(s.buf); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// textProof checks that the bytes written to it are UTF-8.
type textProof struct {
	open []byte
	bad  bool
}

func (t *textProof) Write(p []byte) (int, error) {
	if !t.bad {
		whole, open := splitText(append(t.open, p...))
		t.bad = !utf8.Valid(whole)
		t.open = append([]byte(nil), open...)
	}
	return len(p), nil
}

// splitText cuts off an incomplete character at the end of a text.
func splitText(b []byte) (whole, open []byte) {
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax+1, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i], b[i:]
			}
			break
		}
	}
	return b, nil
}

// BodySize returns a lower bound for the length of a stored message's body: it counts texts without their escapes. With
// texts, it counts references to binary payloads as they are. It opens no blob and trusts the sizes in the references.
func BodySize(stored []byte, texts bool) (size int64, err error) {
	_, err = rewriteRefs(stored, func(piece []byte) error {
		size += int64(len(piece))
		return nil
	}, func(ref *Ref) error {
		if ref.Problem != "" || texts && ref.Encoding != "" {
			return ErrKeep
		}
		n := ref.Size
		if codec := ref.Encoding.codec(); codec != nil {
			n = min(n, math.MaxInt64/2)/3*4 + int64(codec.EncodedLen(int(n%3)))
		}
		size += int64(len(`""`)+len(ref.Prefix)) + min(n, math.MaxInt64/2-size)
		return nil
	})
	return size, err
}

// StringSize returns the length of the string for a text payload.
func (r *Ref) StringSize(payload []byte) int64 {
	return int64(len(`""`)) + r.spelling.size([]byte(r.Prefix)) + r.spelling.size(payload)
}
