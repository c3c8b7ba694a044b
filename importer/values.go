package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// values reads a file that is JSON as a whole: the elements of an array, or consecutive objects. Memory holds only the
// current value. After a syntax error, values cannot be separated any more, so the rest is reported as one problem.
type values struct {
	d      *jsontext.Decoder
	src    *limitReader
	file   io.ReaderAt
	report func(line int64, reason string) // may be nil

	start  int64 // offset of the decoder's first byte
	begin  int64 // the end of the value before the current one
	offset int64 // line is the line of this offset
	line   int64
	end    bool
}

func (v *values) next() (json.RawMessage, int64, error) {
	for !v.end {
		v.begin = v.d.InputOffset()
		v.src.floor = v.begin
		if k := v.d.PeekKind(); k == ']' || k == '[' && v.d.StackDepth() == 0 {
			if _, err := v.d.ReadToken(); err != nil {
				return v.broken(err)
			}
			continue
		}
		value, err := v.d.ReadValue()
		if err != nil {
			return v.broken(err)
		}
		body, err := message.Compact(value)
		line := v.lineAt(v.d.InputOffset() - int64(len(value)))
		if err == nil {
			return body, line, nil
		}
		v.problem(line, reasonOf(err))
	}
	return nil, v.line, io.EOF
}

// broken ends the read.
func (v *values) broken(err error) (json.RawMessage, int64, error) {
	v.end = true
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, ErrTooLarge):
		v.problem(v.lineAt(v.value()), fmt.Sprintf("%v: the limit is %d bytes; the rest was not read", ErrTooLarge, v.src.limit))
	case errors.Is(err, io.ErrUnexpectedEOF):
		v.problem(v.lineAt(v.value()), "the last value is truncated")
	case errors.As(err, &syntactic):
		v.problem(v.lineAt(syntactic.ByteOffset), fmt.Sprintf("invalid JSON: %v; the rest was not read", syntactic.Err))
	default:
		return nil, v.line, err
	}
	return nil, v.line, io.EOF
}

// value is the offset of the current value: begin is the end of the value before.
func (v *values) value() int64 {
	var buf [4 << 10]byte
	n, _ := v.file.ReadAt(buf[:], v.start+v.begin)
	return v.begin + int64(n-len(bytes.TrimLeft(buf[:n], " \t\r\n,")))
}

func (v *values) problem(line int64, reason string) {
	if v.report != nil {
		v.report(line, reason)
	}
}

// lineAt counts from the last offset: offsets only grow.
func (v *values) lineAt(offset int64) int64 {
	offset += v.start
	var buf [32 << 10]byte
	for v.offset < offset {
		n, err := v.file.ReadAt(buf[:min(int64(len(buf)), offset-v.offset)], v.offset)
		v.line += int64(bytes.Count(buf[:n], []byte{'\n'}))
		v.offset += int64(n)
		if err != nil {
			break
		}
	}
	return v.line
}

// limitReader fails if the reader wants more than limit bytes after floor, so that an endless value does not fill the
// memory.
type limitReader struct {
	r           io.Reader
	read, floor int64
	limit       int64
}

func (b *limitReader) Read(p []byte) (int, error) {
	if b.read-b.floor > b.limit {
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p)
	b.read += int64(n)
	return n, err
}

// inMemory returns the elements of an array in memory.
type inMemory struct {
	d      *jsontext.Decoder
	line   int64
	report func(line int64, reason string) // may be nil
}

func newInMemory(array jsontext.Value, line int64, report func(int64, string)) *inMemory {
	d := jsontext.NewDecoder(bytes.NewReader(array), lenient...)
	_, _ = d.ReadToken()
	return &inMemory{d, line, report}
}

func (m *inMemory) next() (json.RawMessage, int64, error) {
	for m.d.PeekKind() != ']' {
		v, err := m.d.ReadValue()
		if err != nil {
			return nil, m.line, io.EOF
		}
		body, err := message.Compact(v)
		if err == nil {
			return body, m.line, nil
		}
		if m.report != nil {
			m.report(m.line, reasonOf(err))
		}
	}
	return nil, m.line, io.EOF
}

// elements calls f for each element of a JSON array; any other value has none.
func elements(array jsontext.Value, f func(jsontext.Value) error) error {
	if array.Kind() != '[' {
		return nil
	}
	return message.Elements(array, f)
}

// text is a JSON string's content; "" for any other value, and for a string longer than limit bytes.
func text(v jsontext.Value, limit int) string {
	var s string
	if v.Kind() != '"' || len(v) > limit+2 || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// Limits of texts that the importer uses beside a record, in bytes.
const (
	maxName = 512 // names and ids
	maxPath = 4 << 10
	maxText = 64 << 10 // titles
)

// member returns the value of a member of an object, at any depth; nil if there is none.
func member(v jsontext.Value, path ...string) jsontext.Value {
	for _, key := range path {
		if v.Kind() != '{' {
			return nil
		}
		var found jsontext.Value
		_ = message.Members(v, func(name string, v jsontext.Value) error {
			if name == key && found == nil {
				found = v.Clone()
			}
			return nil
		})
		v = found
	}
	return v
}

// textAt returns the string at a path of members; "" for any other value.
func textAt(v jsontext.Value, limit int, path ...string) string {
	return text(member(v, path...), limit)
}

// number is a JSON number without fraction; 0 for any other value.
func number(v jsontext.Value) int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// contentText is the first text of a message's content: a string, or a list of blocks.
func contentText(v jsontext.Value) (s string) {
	s = text(v, len(v))
	_ = elements(v, func(part jsontext.Value) error {
		if s == "" && part.Kind() == '{' {
			s = textAt(part, len(part), "text")
		}
		return nil
	})
	return s
}

// maxNesting limits the depth of messages within messages.
const maxNesting = 1000

// errStop ends the read of a file when the caller stops.
var errStop = errors.New("stopped")

// errEnough ends a read that has found its goal.
var errEnough = errors.New("read enough")

// appendMember appends a member to an unfinished object.
func appendMember(object []byte, name string, v jsontext.Value) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		// The decoder replaced half a surrogate pair in the name, so Marshal can write it.
		quoted, _ = json.Marshal(name)
	}
	return append(append(append(object, quoted...), ':'), v...)
}

// lenient finds values; [message.Compact] decides which of them are messages that can be stored.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// reasonOf explains an error about JSON to a person who looks at the line.
func reasonOf(err error) string {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated JSON value"
	case errors.As(err, &syntactic):
		return fmt.Sprintf("invalid JSON at byte %d of it: %v", syntactic.ByteOffset, syntactic.Err)
	}
	return strings.TrimPrefix(err.Error(), message.ErrMalformed.Error()+": ")
}
