package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of detection, after leading NUL bytes and white space.
const (
	detectBytes   = 4 << 20
	detectObjects = 100
)

// detect sets the layout, and the format if the options name none.
func (j *job) detect() error {
	head, err := j.head()
	if errors.Is(err, ErrEmpty) && j.o.Growing {
		return errUnfinished
	}
	if err != nil {
		return err
	}
	first := shape{}
	if head[0] == '[' || head[0] == '{' {
		first = shapeOf(head)
	}
	switch {
	case j.packed: // only logs are compressed
	case first.array && (first.element || first.empty):
		j.layout = asArray
	case first.spans:
		j.layout = asObject
	}
	switch j.o.Format {
	case "", Auto:
		if j.format = recognise(head, first, j.layout); j.format == "" {
			if first.truncated && j.o.Growing && len(head) < detectBytes {
				return errUnfinished
			}
			return unknown(&first)
		}
	default:
		j.format = j.o.Format
	}
	if !slices.Contains(Formats(), j.format) {
		return fmt.Errorf("%w: unknown format %q", ErrFormat, j.format)
	}
	if byLines[j.format] {
		j.layout = byLine
	}
	j.storage = j.format == OpenCode && !slices.Contains(first.keys, "messages")
	if j.o.Growing && j.layout != byLine && !j.whole() {
		return errUnfinished
	}
	return nil
}

// whole reports whether a file that is JSON as a whole does not end in the middle of it.
func (j *job) whole() bool {
	d := jsontext.NewDecoder(j.reader(nil), lenient...)
	for {
		switch _, err := d.ReadToken(); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return false
		case err != nil:
			return true // or damaged, which the import reports
		}
	}
}

// head is the beginning of the file, from the first JSON on.
func (j *job) head() ([]byte, error) {
	r := bufio.NewReaderSize(j.reader(nil), 256<<10)
	if b, _ := r.Peek(len(bom)); string(b) == bom {
		_, _ = r.Discard(len(bom))
	}
	if b, _ := r.Peek(len(exportingLine)); string(b) == exportingLine {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, ErrEmpty
		}
		j.skip = int64(len(line))
	}
	nul := false
	for {
		c, err := r.ReadByte()
		if err == io.EOF {
			if nul {
				return nil, fmt.Errorf("%w: only NUL bytes, as after a crash", ErrEmpty)
			}
			return nil, ErrEmpty
		}
		if err != nil {
			return nil, err
		}
		if c != 0 && notSpace(rune(c)) {
			break
		}
		nul = nul || c == 0
	}
	if err := r.UnreadByte(); err != nil {
		return nil, err
	}
	size := int64(detectBytes)
	if !j.packed {
		size = min(size, j.size)
	}
	head := make([]byte, size)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	return head[:n], nil
}

// recognise returns the format of a file that begins with head, "" if none.
func recognise(head []byte, first shape, l layout) Format {
	if l != byLine {
		f := first.format()
		if byLines[f] {
			return "" // unlike this file
		}
		if first.empty {
			return OpenAI
		}
		return f
	}
	objects := 0
	var found Format
	for len(head) > 0 && objects < detectObjects {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		// NUL bytes of a crash may precede the object.
		if i := bytes.LastIndexByte(line, 0); i >= 0 {
			line = line[i+1:]
		}
		head = rest
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		s := shapeOf(line)
		switch f := s.format(); {
		case f != "" && f != JSONL:
			return f
		case s.whole || len(rest) == 0 && s.truncated:
			// One object alone may be anything, such as a file of settings.
			if objects++; objects > 1 {
				found = JSONL
			}
		}
	}
	return found
}
