package storetest_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestSpelling: other systems and editors spell what a file holds in another way. It is the same message, unedited, and
// nothing is wrong.
func TestSpelling(t *testing.T) {
	t.Parallel()
	indented := func(b []byte) []byte {
		var out bytes.Buffer
		kit.Check(t, json.Indent(&out, b, "", "  "))
		return out.Bytes()
	}
	upper := func(b []byte) []byte {
		id := string(b[bytes.Index(b, []byte(`"id":"`))+6:][:36])
		return bytes.Replace(b, []byte(id), []byte(strings.ToUpper(id)), 1)
	}
	for name, respell := range map[string]func(b []byte) []byte{
		"byte order mark":     func(b []byte) []byte { return append([]byte("\ufeff"), b...) },
		"CRLF":                func(b []byte) []byte { return append(bytes.TrimRight(b, "\n"), "\r\n"...) },
		"mark and CRLF":       func(b []byte) []byte { return []byte("\ufeff" + strings.TrimRight(string(b), "\n") + "\r\n") },
		"no newline":          func(b []byte) []byte { return bytes.TrimRight(b, "\n") },
		"two newlines":        func(b []byte) []byte { return append(b, '\n') },
		"indented":            indented,
		"upper-case id":       upper,
		"all of them":         func(b []byte) []byte { return []byte("\ufeff" + string(indented(upper(b))) + "\r\n\r\n") },
		"a member of another": func(b []byte) []byte { return append([]byte(`{"by":"an editor",`), b[1:]...) },
		"order of the members": func(b []byte) []byte {
			return bytes.Replace(append([]byte(`{"role":"user",`), b[1:]...), []byte(`,"role":"user"`), nil, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := kit.NewPatient(t, false)
			path := p.Main[30]
			p.KeepTime(path, func() { p.Change(path, respell) })
			p.In(func(c *engine.Context) {
				m := kit.Must[*engine.Message](t)(c.Active().Message(t.Context(), p.Want["main"][30].ID))
				if m.Unavailable != nil || m.Edited || string(m.Stored) != p.Want["main"][30].Text {
					t.Errorf("unavailable %v, edited %v, %s", m.Unavailable, m.Edited, m.Stored)
				}
			})
			if found, lost := p.Heal(checking.Options{}); len(found) > 0 || lost > 0 {
				t.Errorf("%d are lost, found %+v", lost, found)
			}
		})
	}
}

// TestInvalidEnvelope: what is no valid envelope is damage, and no edit, whatever its message looks like.
func TestInvalidEnvelope(t *testing.T) {
	for name, damage := range map[string][2]string{
		"invalid UTF-8 in a member":      {`,"role":"user"`, ",\"role\":\"us\xffer\""},
		"invalid UTF-8 in a name":        {`,"role":"user"`, ",\"r\xc3le\":\"user\""},
		"invalid UTF-8 in the message":   {`message 30`, "message \xed\xa0\x80"},
		"an id without hyphens":          {`"line":"`, `"line":"00000000000000000000000000000000","x":"`},
		"an id in braces":                {`"prev":"`, `"prev":"{00000000-0000-0000-0000-000000000000}","x":"`},
		"no time":                        {`"stored_at"`, `"stored_on"`},
		"a position that is no integer":  {`"position":30`, `"position":30.0`},
		"null in the place of its place": {`"position":30`, `"position":null`},
	} {
		t.Run(name, func(t *testing.T) {
			p := kit.NewPatient(t, true)
			p.Change(p.Main[30], func(b []byte) []byte {
				now := bytes.Replace(b, []byte(damage[0]), []byte(damage[1]), 1)
				if bytes.Equal(b, now) {
					t.Fatalf("nothing changed in %s", b)
				}
				return now
			})
			found, lost := p.Heal(checking.Options{})
			if len(found) != 1 || found[0].Kind != integrity.KindDamaged || lost > 0 {
				t.Errorf("%d are lost, found %+v", lost, found)
			}
		})
	}
}

// TestSpellingOfOnlyCopies: messages of which files alone are left are served whatever was put around them.
func TestSpellingOfOnlyCopies(t *testing.T) {
	for name, respell := range map[string]func(b []byte) []byte{
		"byte order mark": func(b []byte) []byte { return append([]byte("\ufeff"), b...) },
		"CRLF":            func(b []byte) []byte { return append(bytes.TrimRight(b, "\n"), "\r\n"...) },
	} {
		t.Run(name, func(t *testing.T) {
			p := kit.NewPatient(t, false)
			for _, path := range p.Main {
				p.Change(path, respell)
			}
			p.Change(filepath.Join(p.Dir, "metadata.json"),
				func(b []byte) []byte { return bytes.ReplaceAll(respell(b), []byte("\n"), []byte("\r\n")) })
			p.Remove(append(p.Glob("log-*"), p.Glob("segments")...)...)
			if found, lost := p.Heal(checking.Options{}); lost > 0 {
				t.Errorf("%d are lost, found %+v", lost, found)
			}
			p.In(func(c *engine.Context) {
				if title := c.Metadata().Title; title != "a title" {
					t.Errorf("the title is %q", title)
				}
			})
		})
	}
}
