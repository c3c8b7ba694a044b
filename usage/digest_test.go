package usage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/usage"
	"github.com/google/uuid"
)

// noTexts stands for a message whose texts are where they belong.
func noTexts() (json.RawMessage, error) { return nil, nil }

// FuzzDigestion: the digest of a message has what a scan sees.
func FuzzDigestion(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"role":"user","content":"Is it?"}`, `{"role":"assistant","content":"It is."}`, fmt.Sprintf(claudeLine, 1, 1, 4),
		fmt.Sprintf(codexCount, 10, 1), `{"timestamp":"t","type":"turn_context","payload":{"model":"gpt"}}`,
		`{"source":"agent","llm_metrics":{"accumulated_cost":0.5,"accumulated_token_usage":{"prompt_tokens":10,"completion_tokens":1}}}`,
		`{"role":"assistant","usage":{"input_tokens":1099511627776,"output_tokens":1099511627777},"cost":1e300}`,
		`{"info":{"model_stats":{"instance_cost":0.25,"tokens_sent":5,"api_calls":3}}}`,
		`{"role":"assistant","model":"` + strings.Repeat("m", 300) + `","usage":{"input_tokens":1,"output_tokens":2}}`,
	} {
		f.Add("assistant", []byte(body), int64(1), int64(1))
		f.Add("user", []byte(body), int64(math.MinInt64), int64(-1))
	}
	f.Fuzz(func(t *testing.T, role string, body []byte, created, stored int64) {
		m := &ctxdir.Message{Role: role, Stored: body, StoredAt: time.Unix(stored, stored&0xffff)}
		if created != 0 {
			m.CreatedAt = time.Unix(created, 5)
		}
		got, _, err := usage.Decode(usage.Digestion(m, noTexts))
		if want := usage.Brief(m); err != nil || got != want {
			t.Errorf("%v\n%s\n%s", err, got, want)
		}
	})
}

// FuzzDecode: no data makes the decoder fail otherwise than with an error, and what it takes it gives back.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{`{"role":"user","content":"Is it?"}`, fmt.Sprintf(claudeLine, 1, 1, 4), fmt.Sprintf(codexCount, 10, 1)} {
		f.Add(usage.Digestion(&ctxdir.Message{Role: "assistant", Stored: []byte(body), StoredAt: time.Unix(1, 2)}, noTexts))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		brief, again, err := usage.Decode(data)
		if err != nil {
			return
		}
		if same, _, err := usage.Decode(again); err != nil || same != brief {
			t.Errorf("%v\n%s\n%s", err, brief, same)
		}
	})
}

// TestDamagedDigest: a digest that is cut short, or longer than it says, is damage.
func TestDamagedDigest(t *testing.T) {
	data := usage.Digestion(&ctxdir.Message{
		ID: uuid.New(), Role: "assistant", Stored: fmt.Appendf(nil, claudeLine, 1, 1, 4), StoredAt: time.Unix(1e9, 7),
	}, noTexts)
	if _, again, err := usage.Decode(data); err != nil || !bytes.Equal(again, data) {
		t.Fatalf("%v: %x, want %x", err, again, data)
	}
	for n := 1; n < len(data); n++ {
		if brief, _, err := usage.Decode(data[:n]); err == nil {
			t.Errorf("%d bytes of %d: %s", n, len(data), brief)
		}
	}
	if _, _, err := usage.Decode(append(bytes.Clone(data), 0)); err == nil {
		t.Error("a byte too many")
	}
	huge := []byte{0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0}
	if _, _, err := usage.Decode(huge); err == nil {
		t.Error("2⁶³-1 records in 14 bytes")
	}
}
