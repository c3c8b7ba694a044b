package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// layout is the arrangement of records in a file.
type layout int

const (
	byLine   layout = iota // one object per line
	asArray                // one JSON array
	asObject               // one JSON object, over several lines
)

// Limits of detection, after leading NUL bytes and white space.
const (
	detectBytes   = 4 << 20
	detectObjects = 100
)

// detect sets the layout, and the format if the options name none.
func (j *job) detect() error {
	head, err := j.head()
	if err != nil {
		return err
	}
	first := shape{}
	if head[0] == '[' || head[0] == '{' {
		first = shapeOf(head)
	}
	switch {
	case first.array && (first.element || first.empty):
		j.layout = asArray
	case first.spans:
		j.layout = asObject
	}
	switch j.o.Format {
	case "", Auto:
		if j.format = recognise(head, first, j.layout); j.format == "" {
			if slices.Contains(first.keys, "message_pool") {
				return fmt.Errorf("%w: it is a legacy context, which \"ctxtool migrate\" converts", ErrFormat)
			}
			return ErrFormat
		}
	default:
		j.format = j.o.Format
	}
	switch j.format {
	case Codex, OpenCode, Gemini:
		return fmt.Errorf("a history of the format %s: %w", j.format, ErrNotYet)
	case ClaudeCode, JSONL:
		j.layout = byLine
	case ChatGPT, OpenAI:
	default:
		return fmt.Errorf("%w: unknown format %q", ErrFormat, j.format)
	}
	return nil
}

// head is the beginning of the file, from the first JSON on.
func (j *job) head() ([]byte, error) {
	r := bufio.NewReaderSize(j.reader(nil), 256<<10)
	if b, _ := r.Peek(len(bom)); string(b) == bom {
		_, _ = r.Discard(len(bom))
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
	head := make([]byte, min(detectBytes, j.size))
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
		if f == ClaudeCode || f == JSONL {
			// Both formats are lines, unlike this file.
			return ""
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
			objects++
			found = JSONL
		}
	}
	return found
}

// shape describes the beginning of a JSON value by the members of the first object.
type shape struct {
	array     bool // the object is the first element of an array
	empty     bool // an array without elements
	element   bool // an object exists
	whole     bool // the object is complete
	truncated bool // it continues beyond the bytes read
	spans     bool // it covers several lines
	keys      []string
	kinds     map[string]jsontext.Kind
	values    map[string]string // short strings
}

// shapeOf reads as far as it can: detection sees a file's first bytes, not whole values.
func shapeOf(b []byte) (s shape) {
	s.kinds, s.values = map[string]jsontext.Kind{}, map[string]string{}
	d := jsontext.NewDecoder(bytes.NewReader(b), lenient...)
	if d.PeekKind() == '[' {
		_, _ = d.ReadToken()
		s.array = true
		if d.PeekKind() == ']' {
			_, _ = d.ReadToken()
			s.empty = !bytes.ContainsFunc(b[d.InputOffset():], notSpace)
			return s
		}
	}
	if d.PeekKind() != '{' {
		return s
	}
	_, _ = d.ReadToken()
	s.element = true
	begin := d.InputOffset()
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			break
		}
		key := t.String()
		kind := d.PeekKind()
		s.keys = append(s.keys, key)
		s.kinds[key] = kind
		v, err := d.ReadValue()
		if err != nil {
			s.truncated = errors.Is(err, io.ErrUnexpectedEOF)
			break
		}
		s.values[key] = text(v, maxName)
		if key == "messages" {
			s.values["messages[0]"] = firstKind(v)
		}
	}
	if !s.truncated {
		_, err := d.ReadToken()
		s.whole = err == nil
		s.truncated = errors.Is(err, io.ErrUnexpectedEOF)
	}
	end := d.InputOffset()
	if s.truncated {
		end = int64(len(b))
	}
	s.spans = (s.whole || s.truncated) && bytes.ContainsRune(b[begin:end], '\n')
	return s
}

func firstKind(array jsontext.Value) (kind string) {
	_ = elements(array, func(v jsontext.Value) error {
		kind = v.Kind().String()
		return io.EOF
	})
	return kind
}

// format is the format for which such an object is typical; [JSONL] if for none.
func (s *shape) format() Format {
	if !s.element {
		return ""
	}
	has := func(keys ...string) bool {
		return !slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(s.keys, k) })
	}
	is := func(key string, kind jsontext.Kind) bool { return s.kinds[key] == kind }
	typ := s.values["type"]
	switch {
	case is("mapping", '{'):
		return ChatGPT
	case has("timestamp", "type", "payload"), typ == "session_meta", has("record_type"):
		return Codex
	case is("info", '{') && is("messages", '['), strings.HasPrefix(s.values["sessionID"], "ses_"),
		strings.HasPrefix(s.values["id"], "ses_") && has("projectID"):
		return OpenCode
	case has("sessionId", "projectHash"), has("$set"), has("$rewindTo"):
		return Gemini
	case typ != "" && (is("sessionId", '"') || has("uuid", "parentUuid") || has("leafUuid")),
		typ == "file-history-snapshot":
		return ClaudeCode
	case is("role", '"') && (has("content") || has("tool_calls") || has("function_call")):
		return OpenAI
	case is("messages", '[') && !s.array || is("messages", '[') && s.values["messages[0]"] == "{":
		return OpenAI
	case s.array:
		return ""
	}
	return JSONL
}
