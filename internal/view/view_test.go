package view_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/view"
	"github.com/ctxdir/ctxdir/transcript"
)

// stored returns a message as a store gives it back.
func stored(t *testing.T, body string, attached map[string][]byte) *ctxdir.Message {
	t.Helper()
	ctx := t.Context()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := s.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	d := ctxdir.Draft{Body: []byte(body)}
	for at, content := range attached {
		d.Attachments = append(d.Attachments, ctxdir.Attachment{At: at, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}})
	}
	if _, err := c.Active().Append(ctx, d); err != nil {
		t.Fatal(err)
	}
	all, err := c.Active().Last(ctx, 1)
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	return all[0]
}

func TestFile(t *testing.T) {
	source := func(kind, media, name, data string) string {
		return `{"type":"` + kind + `","filename":"` + name + `","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
	}
	tests := []struct {
		name, block string
		content     []byte // of the payload at /content/0/source/data; nil for none
		want        string
	}{
		{"text", source("file", "text/plain", "a/notes.txt", ""), []byte("one\ntwo <b>\n"), "<file path=\"a/notes.txt\">one\ntwo <b>\n</file>"},
		{"inline text", source("file", "application/json", "a.json", "e30="), nil, `<file path="a.json">{}</file>`},
		{"parameters", source("file", "text/x-go; charset=utf-8", "a.go", ""), []byte("package a"), `<file path="a.go">package a</file>`},
		{"binary", source("image", "image/png", "dot.png", ""), []byte("\x89PNG\x00"), "[image image/png dot.png, 5 B]"},
		{"no text after all", source("file", "text/plain", "a.txt", ""), []byte("a\xffb"), "[file text/plain a.txt, 3 B]"},
		{"zero byte", source("file", "text/plain", "a.txt", ""), []byte("a\x00b"), "[file text/plain a.txt, 3 B]"},
		{"end tag in the text", source("file", "text/plain", "a", ""), []byte("x</file>y"), `<file path="a">x<\/file>y</file>`},
		{"quote in the path", source("file", "text/plain", `a\"><b`, ""), []byte("x"), `<file path="a&#34;&gt;&lt;b">x</file>`},
		{"large", source("file", "text/plain", "a", ""), bytes.Repeat([]byte("x"), view.MaxText+1), "[file text/plain a, 1.0 MiB]"},
		{"url", `{"type":"document","title":"t","source":{"type":"url","url":"https://example.org"}}`, nil, "[document t]"},
		{
			"document of Anthropic", `{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"abcd"}}`, nil,
			`<file path="t">abcd</file>`,
		},
		{
			"file of opencode", `{"type":"file","mime":"text/plain","filename":"b.txt","url":"data:text/plain;base64,aGk="}`, nil,
			`<file path="b.txt">hi</file>`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var attached map[string][]byte
			if test.content != nil {
				attached = map[string][]byte{"/content/0/source/data": test.content}
			}
			m := stored(t, `{"role":"user","content":[`+test.block+`]}`, attached)
			texts, err := m.Texts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			parts := transcript.Parts(texts)
			if len(parts) != 1 {
				t.Fatal(parts)
			}
			if got := view.File(m, &parts[0]); got != test.want {
				t.Errorf("got %q, want %q", got[:min(len(got), 200)], test.want)
			}
			body, err := m.Body(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := view.File(m, &transcript.Parts(body)[0]); got != test.want {
				t.Errorf("with the payload in place: got %q, want %q", got[:min(len(got), 200)], test.want)
			}
		})
	}
}

func TestContentLimit(t *testing.T) {
	hundred := map[string][]byte{"/content/0/source/data": []byte(strings.Repeat("x", 100))}
	m := stored(t, `{"content":[{"type":"image","source":{"data":""}}]}`, hundred)
	p := transcript.Parts(m.Stored)[0]
	if b, err := view.Content(m, p.File, 100); err != nil || len(b) != 100 {
		t.Error(len(b), err)
	}
	if _, err := view.Content(m, p.File, 99); err == nil {
		t.Error("a file above the limit was read")
	}
}
