package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestSpelling: other systems and editors spell what a file holds in another way. It is the same message, unedited; a
// check tells of it, and a repair writes the file again and keeps a copy.
func TestSpelling(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
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
		for _, second := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", in journals", false: ", files alone"}[second], func(t *testing.T) {
				p := kit.NewPatient(t, second)
				path := p.Main[30]
				p.KeepTime(path, func() { p.Change(path, respell) })
				respelled := kit.Must[[]byte](t)(os.ReadFile(path))
				c := kit.Must[*engine.Context](t)(p.Store.Context(ctx, p.ID))
				m := kit.Must[*engine.Message](t)(c.Active().Message(ctx, p.Want["main"][30].ID))
				if m.Unavailable != nil || m.Edited || string(m.Stored) != p.Want["main"][30].Text {
					t.Errorf("unavailable %v, edited %v, %s", m.Unavailable, m.Edited, m.Stored)
				}
				kit.Check(t, c.Close())
				found, lost := p.Heal(engine.CheckOptions{})
				if len(found) != 1 || found[0].Kind != integrity.KindEdited || found[0].ID != m.ID || lost > 0 {
					t.Errorf("%d are lost, found %+v", lost, found)
				}
				now := kit.Must[[]byte](t)(os.ReadFile(path))
				if !bytes.HasSuffix(now, []byte("}\n")) || !json.Valid(now) || bytes.Count(now, []byte("\n")) != 1 {
					t.Errorf("the file is %q", now)
				}
				if !p.InTrash(respelled) {
					t.Error("there is no copy in the trash")
				}
			})
		}
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
			found, lost := p.Heal(engine.CheckOptions{})
			if len(found) != 1 || found[0].Kind != integrity.KindDamaged || lost > 0 {
				t.Errorf("%d are lost, found %+v", lost, found)
			}
		})
	}
}

// TestSpellingWithoutIndex: a message whose file alone is left is served whatever was put around it.
func TestSpellingWithoutIndex(t *testing.T) {
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
			p.Remove(p.Glob("index*")...)
			p.Remove(p.Glob("journal-*")...)
			found, lost := p.Heal(engine.CheckOptions{})
			if lost > 0 {
				t.Errorf("%d are lost, found %+v", lost, found)
			}
			c := kit.Must[*engine.Context](t)(p.Store.Context(context.Background(), p.ID))
			defer c.Close()
			if title := c.Metadata().Title; title != "a title" {
				t.Errorf("the title is %q", title)
			}
		})
	}
}
