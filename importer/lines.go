package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// records returns the JSON objects of a file one by one: compact, verbatim, with their line. At the end it returns
// io.EOF. It reports anything else before it skips it.
type records interface {
	next() (body json.RawMessage, line int64, err error)
}

// lines reads JSON Lines as crashes and writers without locks leave them: lines fused because a newline was lost, tails
// cut off, blocks of NUL where a write never reached the disk.
type lines struct {
	r      *bufio.Reader
	limit  int64
	report func(line int64, reason string) // may be nil

	growing bool // a last line without an end is not yet a line
	open    bool // the line has no end

	number  int64  // of the current line, 1-based
	nul     int64  // NUL bytes in it
	reason  string // its other problem
	objects []json.RawMessage
	line    int64 // the line of objects
	buf     []byte
}

// bom is the byte order mark that a Windows editor may put at the beginning of a file.
const bom = "\ufeff"

func newLines(r io.Reader, limit int64, report func(int64, string)) *lines {
	l := &lines{r: bufio.NewReaderSize(r, 256<<10), limit: limit, report: report, number: 1}
	if b, _ := l.r.Peek(len(bom)); string(b) == bom {
		_, _ = l.r.Discard(len(bom))
	}
	return l
}

func (l *lines) next() (json.RawMessage, int64, error) {
	for len(l.objects) == 0 {
		part, ended, err := l.part()
		if err != nil {
			return nil, l.number, err
		}
		if bytes.ContainsFunc(part, notSpace) {
			l.objects = l.split(part)
		}
		l.line = l.number
		if ended {
			l.endLine()
		}
	}
	o := l.objects[0]
	l.objects[0] = nil
	l.objects = l.objects[1:]
	return o, l.line, nil
}

func notSpace(r rune) bool { return r != ' ' && r != '\t' && r != '\r' && r != '\n' }

// part reads up to the end of the line or to the next NUL. A raw NUL is never part of JSON, so a block of NULs
// separates bytes written before a crash from bytes written after it. The result is valid until the next call.
func (l *lines) part() (part []byte, ended bool, err error) {
	if cap(l.buf) > 4<<20 {
		l.buf = nil
	}
	part = l.buf[:0]
	size := int64(0)
	defer func() { l.buf = part[:0] }()
	for {
		if _, err := l.r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && size == 0 {
				l.endLine()
				return part, true, io.EOF
			}
			if err != io.EOF {
				return part, true, err
			}
			ended, l.open = true, true
			break
		}
		b, _ := l.r.Peek(l.r.Buffered())
		if b[0] == 0 {
			if size > 0 {
				break
			}
			run := len(b) - len(bytes.TrimLeft(b, "\x00"))
			l.nul += int64(run)
			_, _ = l.r.Discard(run)
			continue
		}
		n := bytes.IndexAny(b, "\n\x00")
		if n < 0 {
			n = len(b)
		}
		ended = n < len(b) && b[n] == '\n'
		// Above the limit, only count.
		if size += int64(n); size <= l.limit {
			part = append(part, b[:n]...)
		}
		if ended {
			n++
		}
		_, _ = l.r.Discard(n)
		if ended {
			break
		}
	}
	if size > l.limit {
		l.blame(fmt.Sprintf("%v: %d bytes exceed the limit of %d", ErrTooLarge, size, l.limit))
		part = part[:0]
	}
	return part, ended, nil
}

// split returns the objects in a part of a line. Those before an error count.
func (l *lines) split(part []byte) []json.RawMessage {
	o, err := message.Compact(part)
	if err == nil {
		return []json.RawMessage{o}
	}
	var objects []json.RawMessage
	d := jsontext.NewDecoder(bytes.NewReader(part), lenient...)
	for {
		v, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			l.blame(reasonOf(err))
			return objects
		}
		o, err := message.Compact(v)
		if err != nil {
			l.blame(reasonOf(err))
			continue
		}
		objects = append(objects, o)
	}
}

// blame records the first problem of the line.
func (l *lines) blame(reason string) {
	if l.reason == "" {
		l.reason = reason
	}
}

// endLine reports the problems of the line once: in another kind of file, every byte may be a problem.
func (l *lines) endLine() {
	var reasons []string
	if l.nul > 0 {
		reasons = append(reasons, fmt.Sprintf("%d NUL bytes", l.nul))
	}
	if l.reason != "" && (!l.open || !l.growing) {
		reasons = append(reasons, l.reason)
	}
	if len(reasons) > 0 && l.report != nil {
		l.report(l.number, strings.Join(reasons, "; "))
	}
	l.number++
	l.nul, l.reason = 0, ""
}
