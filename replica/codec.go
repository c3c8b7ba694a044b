package replica

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Limits of what one value of the protocol may have.
const (
	maxText     = 64 << 10  // bytes of a name, a sum or an error
	maxEnvelope = 320 << 20 // bytes of a message
	maxMetadata = 32 << 20  // bytes of metadata
	maxItems    = 1 << 24   // elements of a list
)

// errProtocol is wrapped by errors about what a peer sent.
var errProtocol = errors.New("the peer does not keep to the protocol")

// encoder writes the values of the protocol: numbers as varints, texts with their length before them. The first error
// remains.
type encoder struct {
	w   *bufio.Writer
	err error
}

func newEncoder(w io.Writer) *encoder { return &encoder{w: bufio.NewWriterSize(w, 32<<10)} }

func (e *encoder) write(b []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
	}
}

func (e *encoder) number(n uint64) {
	var b [binary.MaxVarintLen64]byte
	e.write(b[:binary.PutUvarint(b[:], n)])
}

func (e *encoder) integer(n int64) {
	var b [binary.MaxVarintLen64]byte
	e.write(b[:binary.PutVarint(b[:], n)])
}

func (e *encoder) bytes(b []byte)   { e.number(uint64(len(b))); e.write(b) }
func (e *encoder) text(s string)    { e.bytes([]byte(s)) }
func (e *encoder) id(id uuid.UUID)  { e.write(id[:]) }
func (e *encoder) time(t time.Time) { e.integer(t.UnixMicro()) }
func (e *encoder) sum(n uint64)     { e.write(binary.LittleEndian.AppendUint64(nil, n)) }

// flags writes up to eight booleans.
func (e *encoder) flags(all ...bool) {
	var b byte
	for i, set := range all {
		if set {
			b |= 1 << i
		}
	}
	e.write([]byte{b})
}

func (e *encoder) flush() error {
	if e.err == nil {
		e.err = e.w.Flush()
	}
	return e.err
}

// decoder reads what an encoder wrote. It trusts no length: it takes memory for what is there. After an error, all values are
// zero.
type decoder struct {
	r   *bufio.Reader
	err error
}

func newDecoder(r io.Reader) *decoder { return &decoder{r: bufio.NewReaderSize(r, 32<<10)} }

func (d *decoder) fail(err error) {
	if d.err == nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		d.err = err
	}
}

func (d *decoder) invalid(format string, args ...any) {
	d.fail(fmt.Errorf("%w: %w: "+format, append([]any{errProtocol, ctxdir.ErrInvalid}, args...)...))
}

func (d *decoder) number() uint64 {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(d.r)
	if err != nil {
		d.fail(err)
		return 0
	}
	return n
}

func (d *decoder) integer() int64 {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadVarint(d.r)
	if err != nil {
		d.fail(err)
		return 0
	}
	return n
}

// position reads a position or a count of messages.
func (d *decoder) position() int64 {
	n := d.number()
	if n > maxPosition {
		d.invalid("%d is no position", n)
		return 0
	}
	return int64(n)
}

// maxPosition is the greatest position: see docs/FORMAT.md, "Limits".
const maxPosition = 999_999_999_999_999

func (d *decoder) bytes(most uint64) []byte {
	n := d.number()
	if d.err == nil && n > most {
		d.invalid("%d bytes exceed the limit of %d", n, most)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	const piece = 64 << 10
	if n <= piece {
		b := make([]byte, n)
		if _, err := io.ReadFull(d.r, b); err != nil {
			d.fail(err)
			return nil
		}
		return b
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, d.r, int64(n)); err != nil {
		d.fail(err)
		return nil
	}
	return b.Bytes()
}

func (d *decoder) text() string { return string(d.bytes(maxText)) }

func (d *decoder) id() (id uuid.UUID) {
	d.full(id[:])
	return id
}

func (d *decoder) full(b []byte) {
	if d.err != nil {
		return
	}
	if _, err := io.ReadFull(d.r, b); err != nil {
		clear(b)
		d.fail(err)
	}
}

func (d *decoder) sum() uint64 {
	var b [8]byte
	d.full(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (d *decoder) time() time.Time {
	n := d.integer()
	if d.err != nil {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

func (d *decoder) flags(all ...*bool) {
	var b [1]byte
	d.full(b[:])
	for i, set := range all {
		*set = b[0]&(1<<i) != 0
	}
	if b[0]>>len(all) != 0 {
		d.invalid("unknown flags %08b", b[0])
	}
}

// list reads a list, element by element.
func list[T any](d *decoder, element func() T) (all []T) {
	n := d.number()
	if n > maxItems {
		d.invalid("a list of %d elements", n)
	}
	for ; n > 0 && d.err == nil; n-- {
		if x := element(); d.err == nil {
			all = append(all, x)
		}
	}
	return all
}

func encodeList[T any](e *encoder, all []T, element func(*T)) {
	e.number(uint64(len(all)))
	for i := range all {
		element(&all[i])
	}
}
