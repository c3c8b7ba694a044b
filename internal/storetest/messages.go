package storetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
)

// Append appends a message and returns where it is.
func Append(t *testing.T, b *engine.Branch, d engine.Draft) engine.AppendResult {
	t.Helper()
	return Must[engine.AppendResult](t)(b.Append(context.Background(), d))
}

// Load returns all messages of a branch.
func Load(t *testing.T, b *engine.Branch) []*engine.Message {
	t.Helper()
	return Must[[]*engine.Message](t)(b.Load(context.Background()))
}

// Fill appends n messages.
func Fill(t *testing.T, b *engine.Branch, n int) {
	t.Helper()
	drafts := make([]engine.Draft, n)
	for i := range drafts {
		drafts[i].Body = fmt.Appendf(nil, `{"role":"user","n":%d,"text":%q}`, i, strings.Repeat("z", 200))
	}
	if _, err := b.AppendBatch(context.Background(), drafts); err != nil {
		t.Fatal(err)
	}
}

// BodyOf returns a message's body with its payloads, or what could be read of it and the error.
func BodyOf(m *engine.Message) string {
	body, err := m.Body(context.Background())
	if err != nil {
		return string(body) + " " + err.Error()
	}
	return string(body)
}

// Bodies returns the id and the stored form of each message of a branch.
func Bodies(t *testing.T, b *engine.Branch) (all []string) {
	t.Helper()
	for m, err := range b.Messages(context.Background()) {
		if err != nil || m.Unavailable != nil {
			t.Fatal(err, m.Unavailable)
		}
		all = append(all, m.ID.String()+string(m.Stored))
	}
	return all
}

// ResolvedBodies returns the bodies of a branch, payloads put back.
func ResolvedBodies(t *testing.T, b *engine.Branch) (all []string) {
	t.Helper()
	ctx := context.Background()
	for _, body := range Must[[]json.RawMessage](t)(loader.Bodies(ctx, Load(t, b))) {
		all = append(all, string(body))
	}
	return all
}

// Picture returns a picture in base64.
func Picture(seed byte, size int) string {
	b := bytes.Repeat([]byte{0x89, 'P', 'N', 'G', seed, 0}, size/6)
	return base64.StdEncoding.EncodeToString(b)
}

// Samples returns bodies of every sort.
func Samples() []string {
	long := strings.Repeat("a line of text, \\\"quoted\\\"\\n", 400)
	return []string{
		`{"role":"user","content":"short"}`,
		`{"role":"tool","content":"` + long + `"}`,
		`{"role":"tool","content":"` + strings.Repeat("\\u00fc\\ud83d\\ude00 ", 500) + `"}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + Picture(1, 3000) + `"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + Picture(2, 200_000) + `"}}]}`,
		`{"$blob":"` + strings.Repeat("0", 64) + `","size":1,"n":1.0e400}`,
		`{"a":{"$blob":1},"b":[{"$$blob":"x"}],"text":"` + long + `"}`,
		`{"text":"` + strings.Repeat("x", 300_000) + `"}`,
	}
}

// LargeBody returns a body with a payload that is too large for a log.
func LargeBody(letter string) string {
	return `{"role":"tool","content":"` + strings.Repeat(letter+"payload ", 20_000) + `"}`
}

// Attachment returns an attachment with this content.
func Attachment(at, content string) engine.Attachment {
	return engine.Attachment{At: at, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}
