package message

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// The ways to read an envelope that were compared: docs/DESIGN.md, "Decoding".
func BenchmarkEnvelope(b *testing.B) {
	env := Envelope{
		ID:       uuid.New(),
		Line:     uuid.New(),
		Position: 12345,
		Prev:     uuid.New(),
		StoredAt: time.Now().UTC(),
		Branch:   "main",
		Role:     "assistant",
		Body: json.RawMessage(`{"role":"assistant","content":[{"type":"text","text":"` +
			strings.Repeat("what was said ", 150) + `"}],"usage":{"input_tokens":1,"output_tokens":2}}`),
	}
	raw := env.AppendTo(nil)
	type decoded struct {
		ID       uuid.UUID       `json:"id"`
		Line     uuid.UUID       `json:"line"`
		Position int64           `json:"position"`
		Prev     uuid.UUID       `json:"prev"`
		StoredAt time.Time       `json:"stored_at"`
		Branch   string          `json:"branch"`
		Role     string          `json:"role"`
		Message  json.RawMessage `json:"message"`
	}
	for _, way := range []struct {
		name string
		do   func() error
	}{
		{"trusted", func() error { _, err := ParseTrusted(raw); return err }},
		{"checked", func() error { _, err := Parse(raw); return err }},
		{"jsontext", func() error { _, err := parseAny(raw); return err }},
		{"json v2", func() error { var d decoded; return jsonv2.Unmarshal(raw, &d) }},
		{"encoding json", func() error { var d decoded; return json.Unmarshal(raw, &d) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := way.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
