package legacy

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// scan reads the members of the file, and the places of the nodes.
func (f *File) scan(name string, sum hash.Hash) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.stamp.add(name, info)
	r, mark := withoutMark(io.TeeReader(f.file, sum))
	f.mark = mark
	in := &limitReader{r: r, limit: f.limit + 1<<20, zero: -1, report: f.read, stop: f.stop}
	d := jsontext.NewDecoder(in, message.Verbatim...)
	err = f.scanObject(d, in)
	f.Size = f.mark + in.read
	return readable(err, in)
}

// readable explains why a file is not readable as JSON.
func readable(err error, in *limitReader) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case err == nil, errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, errLimit):
		return fmt.Errorf("%w: it exceeds the limit of %d bytes, from byte %d on", ErrTooLarge, in.limit, in.floor)
	case errors.Is(err, io.EOF) && in.read == 0:
		return damaged("the file is empty")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("the last value is truncated")
	case errors.As(err, &syntactic):
		if in.zero >= 0 {
			return damaged("zero bytes from byte %d on", in.zero)
		}
		return damaged("invalid JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	}
	return err
}

func (f *File) scanObject(d *jsontext.Decoder, in *limitReader) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		if err == nil {
			err = damaged("it is not an object")
		}
		return err
	}
	for d.PeekKind() == '"' {
		m, err := nextMember(d, in)
		if err != nil {
			return err
		}
		switch kind := d.PeekKind(); {
		case m.Is(NamePool) && kind == '{':
			if f.pool {
				return damaged("%q occurs twice", NamePool)
			}
			f.pool = true
			err = f.scanPool(d, in)
		case m.Is(NameBranches) && kind == '{':
			if f.branchesAt >= 0 {
				return damaged("%q occurs twice", NameBranches)
			}
			f.branchesAt = d.InputOffset()
			err = skipMembers(d, in)
		default:
			m.Value, err = shallowNext(d)
		}
		if err != nil {
			return err
		}
		f.Members = append(f.Members, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	in.floor = d.InputOffset()
	switch _, err := d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return damaged("unexpected data after the context, at byte %d", d.InputOffset())
	default:
		return err
	}
}

// nextMember reads the name of the next member of an object.
func nextMember(d *jsontext.Decoder, in *limitReader) (m Member, err error) {
	in.floor = d.InputOffset()
	raw, err := d.ReadValue()
	if err == nil {
		m.Name, err = compacted(raw)
	}
	return m, err
}

// shallowNext reads a value other than a message.
func shallowNext(d *jsontext.Decoder) (jsontext.Value, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	return shallow(value)
}

// skipMembers skips the members of an object; the limit applies to each.
func skipMembers(d *jsontext.Decoder, in *limitReader) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		in.floor = d.InputOffset()
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// scanPool notes the places of the nodes.
func (f *File) scanPool(d *jsontext.Decoder, in *limitReader) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		off := d.InputOffset()
		in.floor = off
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		k, isID := keyOf(t.String())
		if err := d.SkipValue(); err != nil {
			return err
		}
		size := d.InputOffset() - off
		if size > f.limit {
			return fmt.Errorf("%w: %d bytes at offset %d exceed the limit of %d", ErrTooLarge, size, off, f.limit)
		}
		n := node{key: k, off: off, size: uint32(size)}
		if isID {
			n.flags |= canonical
		}
		f.nodes = append(f.nodes, n)
	}
	if len(f.nodes) > math.MaxInt32-1 {
		return fmt.Errorf("%w: %d nodes exceed the limit", ErrTooLarge, len(f.nodes))
	}
	_, err := d.ReadToken()
	return err
}

// limitReader counts bytes, and fails more than limit bytes after floor: an endless value must not fill the memory.
type limitReader struct {
	r           io.Reader
	read, floor int64
	limit       int64
	zero        int64 // offset of the first zero byte; -1 if there is none
	report      func(int64)
	stop        func() error
}

var errLimit = errors.New("limit")

func (c *limitReader) Read(p []byte) (int, error) {
	if c.read-c.floor > c.limit {
		return 0, errLimit
	}
	if c.stop != nil {
		if err := c.stop(); err != nil {
			return 0, err
		}
	}
	n, err := c.r.Read(p)
	if c.zero < 0 {
		if i := slices.Index(p[:n], 0); i >= 0 {
			c.zero = c.read + int64(i)
		}
	}
	c.read += int64(n)
	if c.report != nil {
		c.report(c.read)
	}
	return n, err
}
