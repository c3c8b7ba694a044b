package export

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/go-json-experiment/json/jsontext"
)

// here gives a record of a session the folder that it has on this machine: Claude Code and Codex look for the sessions of a
// folder. Nothing else changes.
func (x *writer) here(body json.RawMessage) json.RawMessage {
	switch {
	case x.o.Here == nil:
	case x.o.Format == ClaudeCode:
		return replaceText(body, x.o.Here, "cwd")
	case x.o.Format == Codex:
		return replaceText(body, x.o.Here, "payload", "cwd")
	}
	return body
}

// replaceText replaces the text at a path of members of an object by what f returns for it. All other bytes stay.
func replaceText(b json.RawMessage, f func(string) string, path ...string) json.RawMessage {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return b
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return b
		}
		if name.String() != path[0] || len(path) > 1 && d.PeekKind() != '{' {
			if d.SkipValue() != nil {
				return b
			}
			continue
		}
		if path = path[1:]; len(path) > 0 {
			if _, err := d.ReadToken(); err != nil {
				return b
			}
			continue
		}
		v, err := d.ReadValue()
		var was string
		if err != nil || json.Unmarshal(v, &was) != nil {
			return b
		}
		now := f(was)
		if now == was {
			return b
		}
		end := int(d.InputOffset())
		return slices.Concat(b[:end-len(v)], record.Encode(now), b[end:])
	}
}
