package search

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// names of members whose values are not text.
var noText = map[string]bool{
	"type": true, "role": true, "signature": true, "thinkingSignature": true, "encrypted_content": true, "timestamp": true, "created_at": true,
	"version": true, "userType": true, "cwd": true, "gitBranch": true, "stop_reason": true, "service_tier": true, "media_type": true,
	"mime_type": true, "mimeType": true, "model": true,
}

// text is one string of a message.
type text struct {
	pointer string // RFC 6901, into the message
	value   string
}

// walk calls yield for each text of a message that want accepts, in order. It leaves out references to payloads. yield
// returns false to end.
func walk(message []byte, want func(name, value string) bool, yield func(t text) bool) error {
	d := jsontext.NewDecoder(bytes.NewReader(message), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	name := "" // of the innermost member
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if token.Kind() == '{' && d.PeekKind() == '"' {
			if err := passReference(d, &name); err != nil {
				return err
			}
		}
		if token.Kind() != '"' {
			continue
		}
		kind, length := d.StackIndex(d.StackDepth())
		if kind == '{' && length%2 == 1 {
			name = token.String()
			continue
		}
		if kind == 0 {
			continue
		}
		value := token.String()
		if value == "" || !want(name, value) {
			continue
		}
		if !yield(text{pointer: string(d.StackPointer()), value: value}) {
			return nil
		}
	}
}

// passReference reads the first name of an object. If the object is the reference to a payload, it passes over the rest.
func passReference(d *jsontext.Decoder, name *string) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if *name = token.String(); *name != "$blob" {
		return nil
	}
	for d.PeekKind() != '}' {
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err
}

func isText(name, value string) bool { return !isNoText(name) && !isData(value) && !isID(value) }

// isID reports whether a string is a UUID.
func isID(s string) bool { return len(s) == 36 && s[8] == '-' && uuid.Validate(s) == nil }

// isNoText reports whether the values of a member are not text: those of ids and of some known names.
func isNoText(name string) bool {
	return noText[name] || name == "id" || name == "uuid" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id") ||
		strings.HasSuffix(name, "ID") || strings.HasSuffix(name, "Uuid") || strings.HasSuffix(name, "UUID")
}

// isData reports whether a string is binary data: a long run without a space.
func isData(s string) bool {
	const long = 512
	return len(s) >= long && strings.IndexByte(s[:long], ' ') < 0 && strings.IndexByte(s[:long], '\n') < 0 && isASCII(s[:long]) ||
		strings.HasPrefix(s, "data:") && strings.Contains(s[:min(len(s), 100)], ";base64,")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// maxPath is the length of a path, in bytes.
const maxPath = 1024

func isPath(s string) bool { return len(s) <= maxPath && !strings.ContainsAny(s, "\n\r\t") }

// inner returns the text that a string stands for: of JSON in a string, such as the arguments of a call, its names and
// values with their escapes resolved; else the string itself.
func inner(value string) string {
	if value[0] != '{' && value[0] != '[' || !strings.Contains(value, `\`) {
		return value
	}
	var b strings.Builder
	d := jsontext.NewDecoder(strings.NewReader(value), jsontext.AllowDuplicateNames(true))
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			return value
		}
		if k := token.Kind(); k == '"' || k == '0' {
			b.WriteString(token.String())
			b.WriteByte('\n')
		}
	}
}
