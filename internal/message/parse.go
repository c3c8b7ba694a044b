package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Text returns the content of a message file without the byte order mark and the line ends that editors and other
// systems add.
func Text(b []byte) []byte {
	return bytes.TrimRight(bytes.TrimPrefix(b, []byte("\ufeff")), "\r\n")
}

// Parse reads an envelope in any valid form, including hand-edited ones. It removes the body's insignificant white
// space and ignores unknown members. The envelope refers to b.
func Parse(b []byte) (Envelope, error) {
	b = Text(b)
	if !utf8.Valid(b) {
		return Envelope{}, malformed("invalid UTF-8")
	}
	e, ok := scan(b)
	if !ok || !valid(b) {
		var err error
		if e, err = parseAny(b); err != nil {
			return e, err
		}
	}
	// An index keeps the time in nanoseconds since 1970.
	if y := e.StoredAt.UTC().Year(); y < 1970 || y > 2261 {
		return e, malformed("stored_at: the year %d is out of range", y)
	}
	return e, nil
}

// ParseTrusted reads an envelope with a proven checksum, without examining the body.
func ParseTrusted(b []byte) (Envelope, error) {
	if e, ok := scan(b); ok {
		return e, nil
	}
	return parseAny(b)
}

// scanner reads the canonical form from left to right and stops at the first deviation.
type scanner struct {
	b  []byte
	ok bool
}

func (s *scanner) skip(text string) bool {
	if !s.ok || len(s.b) < len(text) || string(s.b[:len(text)]) != text {
		return false
	}
	s.b = s.b[len(text):]
	return true
}

func (s *scanner) expect(text string) { s.ok = s.skip(text) }

// text reads up to the closing quote. It leaves escapes to the general parser.
func (s *scanner) text() string {
	if !s.ok {
		return ""
	}
	for i, c := range s.b {
		if c == '\\' {
			break
		}
		if c == '"' {
			v := word(s.b[:i])
			s.b = s.b[i+1:]
			return v
		}
	}
	s.ok = false
	return ""
}

// word returns a text. It allocates nothing for the roles and types that most messages have.
func word(b []byte) string {
	switch string(b) {
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "tool":
		return "tool"
	case "system":
		return "system"
	case "message":
		return "message"
	case "main":
		return "main"
	}
	return string(b)
}

func (s *scanner) uuid() (id uuid.UUID) {
	if !s.ok || len(s.b) < 37 || s.b[36] != '"' {
		s.ok = false
		return
	}
	id, err := uuid.ParseBytes(s.b[:36])
	s.ok = err == nil
	s.b = s.b[37:]
	return id
}

// uuids reads the elements of an array, which has one or more.
func (s *scanner) uuids() (ids []uuid.UUID) {
	for {
		s.expect(`"`)
		ids = append(ids, s.uuid())
		if !s.skip(`,`) {
			s.expect(`]`)
			return ids
		}
	}
}

func (s *scanner) time() (t time.Time) {
	i := bytes.IndexByte(s.b, '"')
	if !s.ok || i < 0 {
		s.ok = false
		return
	}
	s.ok = t.UnmarshalText(s.b[:i]) == nil
	s.b = s.b[i+1:]
	return t
}

func (s *scanner) int() int64 {
	n := 0
	for n < len(s.b) && n < 19 && s.b[n] >= '0' && s.b[n] <= '9' {
		n++
	}
	var v int64
	for _, c := range s.b[:n] {
		if v > (1<<63-10)/10 {
			s.ok = false
			return 0
		}
		v = v*10 + int64(c-'0')
	}
	s.ok = s.ok && n > 0
	s.b = s.b[n:]
	return v
}

// Address is the part of an envelope that an index needs.
type Address struct {
	ID       uuid.UUID
	Line     uuid.UUID
	Position int64
	Prev     uuid.UUID
	StoredAt time.Time
	Payloads int
}

// Address returns the envelope's address.
func (e *Envelope) Address() Address {
	return Address{e.ID, e.Line, e.Position, e.Prev, e.StoredAt, e.Payloads}
}

// ParseAddress reads the address of an envelope in canonical form; b may be only its beginning. It allocates nothing.
func ParseAddress(b []byte) (Address, bool) {
	s := scanner{b, true}
	a := s.address()
	return a, s.ok
}

// ParseCreatedAt reads the message's own time from an envelope in canonical form; b may be only its beginning. It
// returns zero if the envelope states none.
func ParseCreatedAt(b []byte) time.Time {
	if e, s := scanHead(b); s.ok {
		return e.CreatedAt
	}
	return time.Time{}
}

func (s *scanner) address() (a Address) {
	s.expect(`{"ctxdir":"` + Version + `","id":"`)
	a.ID = s.uuid()
	s.expect(`,"line":"`)
	a.Line = s.uuid()
	s.expect(`,"position":`)
	a.Position = s.int()
	s.expect(`,"prev":`)
	if !s.skip(`null`) {
		s.expect(`"`)
		a.Prev = s.uuid()
	}
	s.expect(`,"stored_at":"`)
	a.StoredAt = s.time()
	if s.skip(`,"payloads":`) {
		a.Payloads = int(min(s.int(), math.MaxInt32))
	}
	return a
}

func scan(b []byte) (Envelope, bool) {
	e, s := scanHead(b)
	if s.skip(`,"source":`) || s.skip(`,"references":`) {
		// Finding its end would require parsing it.
		return e, false
	}
	s.expect(`,"message":{`)
	if !s.ok || len(s.b) < 2 || s.b[len(s.b)-1] != '}' || s.b[len(s.b)-2] != '}' {
		return e, false
	}
	rest := len(s.b) + 1 // with the body's opening brace
	e.Body = json.RawMessage(b[len(b)-rest : len(b)-1])
	return e, true
}

func scanHead(b []byte) (e Envelope, s scanner) {
	s = scanner{b, true}
	a := s.address()
	e.ID, e.Line, e.Position, e.Prev, e.StoredAt, e.Payloads = a.ID, a.Line, a.Position, a.Prev, a.StoredAt, a.Payloads
	if s.skip(`,"branch":"`) {
		e.Branch = s.text()
	}
	if s.skip(`,"role":"`) {
		e.Role = s.text()
	}
	if s.skip(`,"type":"`) {
		e.Type = s.text()
	}
	if s.skip(`,"created_at":"`) {
		e.CreatedAt = s.time()
	}
	if s.skip(`,"origin_id":"`) {
		e.OriginID = s.text()
	}
	if s.skip(`,"copy_of":[`) {
		e.CopyOf = s.uuids()
	}
	if s.skip(`,"repeats":[`) {
		e.Repeats = s.uuids()
	}
	return e, s
}

func parseAny(b []byte) (Envelope, error) {
	var e Envelope
	var version string
	seen := map[string]bool{}
	err := Members(b, func(key string, v jsontext.Value) (err error) {
		if v.Kind() == 'n' {
			return nil // null counts as missing
		}
		seen[key] = true
		switch key {
		case "ctxdir":
			return unmarshal(v, &version)
		case "id":
			return unmarshalID(v, &e.ID)
		case "line":
			return unmarshalID(v, &e.Line)
		case "position":
			return unmarshal(v, &e.Position)
		case "prev":
			return unmarshalID(v, &e.Prev)
		case "stored_at":
			return unmarshal(v, &e.StoredAt)
		case "payloads":
			return unmarshal(v, &e.Payloads)
		case "branch":
			return unmarshal(v, &e.Branch)
		case "role":
			return unmarshal(v, &e.Role)
		case "type":
			return unmarshal(v, &e.Type)
		case "created_at":
			return unmarshal(v, &e.CreatedAt)
		case "origin_id":
			return unmarshal(v, &e.OriginID)
		case "copy_of":
			e.CopyOf = idsIn(v)
		case "repeats":
			e.Repeats = idsIn(v)
		case "source":
			e.Source, err = Compact(v)
		case "references":
			if v.Kind() != '[' {
				return nil // the message counts more
			}
			e.References, err = CompactArray(v)
		case "message":
			e.Body, err = Compact(v)
		}
		return err
	})
	if version != Version && strings.HasPrefix(version, kind) {
		return Envelope{}, fmt.Errorf("%w: %q, expected %q", ErrVersion, version, Version)
	}
	if err != nil {
		return Envelope{}, err
	}
	if version != Version {
		return Envelope{}, malformed("the version is %q, expected %q", version, Version)
	}
	for _, k := range []string{"id", "line", "position", "stored_at", "message"} {
		if !seen[k] {
			return Envelope{}, malformed("no %q", k)
		}
	}
	if e.Position < 0 || e.Payloads < 0 {
		return Envelope{}, malformed("position %d, %d payloads", e.Position, e.Payloads)
	}
	return e, nil
}

func unmarshal(v jsontext.Value, into any) error {
	if err := json.Unmarshal(v, into); err != nil {
		return malformed("%v", err)
	}
	return nil
}

// idsIn returns the ids in an array. The message counts more than a value that is not an array, or an element that is not an id.
func idsIn(v jsontext.Value) (ids []uuid.UUID) {
	if v.Kind() != '[' {
		return nil
	}
	_ = Elements(v, func(v jsontext.Value) error {
		var id uuid.UUID
		if unmarshalID(v, &id) == nil {
			ids = append(ids, id)
		}
		return nil
	})
	return ids
}

// unmarshalID reads an id of 36 characters with digits of either case. Package uuid accepts other forms, too.
func unmarshalID(v jsontext.Value, into *uuid.UUID) error {
	var text string
	if err := unmarshal(v, &text); err != nil {
		return err
	}
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return malformed("%q is not a UUID", text)
	}
	*into = id
	return nil
}
