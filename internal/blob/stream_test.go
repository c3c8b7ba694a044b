package blob

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// open is get as a stream that comes in small pieces.
func (m payloadsOf) open(r Ref) (io.ReadCloser, error) {
	b, err := m.get(r)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(iotest.OneByteReader(bytes.NewReader(b))), nil
}

// TestResolveTo: a stream is what [Resolve] returns, where payloads are missing too, and [BodySize] is no more than
// that.
func TestResolveTo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		body := `{"m":` + value(r, 4) + "}"
		stored, refs, m := roundTrip(rapidT{t, r}, body, int64(rapid.SampledFrom([]int{-1, 0, 5, 200}).Draw(r, "threshold")))
		for _, ref := range refs {
			if rapid.IntRange(0, 3).Draw(r, "loses") == 0 {
				delete(m, ref.Sum)
			}
		}
		want, werr := Resolve([]byte(stored), m.get)
		var got bytes.Buffer
		err := ResolveTo(&got, []byte(stored), m.open)
		if got.String() != string(want) || (err == nil) != (werr == nil) ||
			err != nil && (err.Error() != werr.Error() || !errors.Is(err, errGone)) {
			r.Fatalf("%s, %v\nwanted %s, %v", &got, err, want, werr)
		}
		for _, ref := range refs { // escapes do not count
			if b := m[ref.Sum]; ref.Encoding == "" && ref.StringSize(b) != int64(len(ref.restore(nil, b))-len(ref.Prefix)) {
				r.Fatalf("%d bytes for %q", ref.StringSize(b), ref.restore(nil, b))
			}
		}
		if n, err := BodySize([]byte(stored), false); werr == nil && (err != nil || n > int64(len(want))) {
			r.Fatalf("%d bytes of %d, %v", n, len(want), err)
		}
	})
}

// TestResolveToLarge: a payload that is not held is proved before its first byte is written, and what goes wrong
// between the two ends the body.
func TestResolveToLarge(t *testing.T) {
	text := strings.Repeat("é\x01", atOnce)
	whole := Ref{Sum: SumOf([]byte(text)), Size: int64(len(text))}
	stored := append(append([]byte(`{"a":`), whole.appendTo(nil)...), '}')
	full := errors.New("full")
	failing := func(text string) io.Reader { return io.MultiReader(strings.NewReader(text), iotest.ErrReader(full)) }
	for name, c := range map[string]struct {
		first, second io.Reader
		want          error
	}{
		"in order":     {strings.NewReader(text), strings.NewReader(text), nil},
		"a byte less":  {strings.NewReader(text[1:]), nil, ErrDamaged},
		"a byte more":  {strings.NewReader(text + "x"), nil, ErrDamaged},
		"no text":      {strings.NewReader("\xff" + text[1:]), nil, ErrReference},
		"cut":          {strings.NewReader(text[:len(text)-1] + "\xc3"), nil, ErrReference},
		"wrong at end": {failing(text), nil, full},
		"then wrong":   {strings.NewReader(text), failing(text[:5]), full},
	} {
		readers := []io.Reader{c.first, c.second}
		var out bytes.Buffer
		err := ResolveTo(&out, stored, func(Ref) (io.ReadCloser, error) {
			r := readers[0]
			readers = readers[1:]
			return io.NopCloser(r), nil
		})
		unavailable := new(UnavailableError)
		if !errors.Is(err, c.want) || errors.As(err, &unavailable) != (c.want != nil && c.second == nil) {
			t.Errorf("%s: %v", name, err)
		}
		want := string(stored)
		if c.second != nil {
			want = `{"a":"` + strings.Repeat(`é\u0001`, atOnce) + `"}`
		}
		if whole := out.String() == want; whole != (c.want == nil || c.second == nil) {
			t.Errorf("%s: %d bytes written, of %d", name, out.Len(), len(want))
		}
	}
}
