package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestCompactIsVerbatim(t *testing.T) {
	for in, want := range map[string]string{
		`{ "a" : 0.000003 , "b": 12345678901234567890, "a": 1.0 }`: `{"a":0.000003,"b":12345678901234567890,"a":1.0}`,
		"{\"s\":\"\\u003c\\/ \\ud83d  x\u2028 é\", \n\"e\":1E+5}":  "{\"s\":\"\\u003c\\/ \\ud83d  x\u2028 é\",\"e\":1E+5}",
		`{"\u0061":{ }, "n":[ 1 , 2 ],"z":-0}`:                     `{"\u0061":{},"n":[1,2],"z":-0}`,
	} {
		got, err := Compact([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Compact(%s) = %s, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", " ", "42", `"x"`, "[1]", "{", `{"a":1} {"b":2}`, "{\"a\":\"\xff\"}", `{"a":01}`, "null", "\x00\x00"} {
		if got, err := Compact([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("Compact(%q) = %s, %v; wanted ErrMalformed", bad, got, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	for in, want := range map[string][2]string{
		`{"role":"user","content":"x"}`:                              {"user", ""},
		`{"type":"assistant","message":{"role":"assistant"}}`:        {"assistant", "assistant"},
		`{"author":{"role":"tool"},"create_time":1708580164.172007}`: {"tool", ""},
		`{"type":7,"role":null}`:                                     {"", ""},
	} {
		role, typ, _ := Describe([]byte(in))
		if role != want[0] || typ != want[1] {
			t.Errorf("Describe(%s) = %q, %q", in, role, typ)
		}
	}
	if _, _, at := Describe([]byte(`{"create_time":1708580164.172007}`)); !at.Equal(time.Unix(1708580164, 172007000)) {
		t.Errorf("time %v", at)
	}
}

func drawUUID(t *rapid.T, label string) (id uuid.UUID) {
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
	return id
}

func TestEnvelopeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Envelope{
			ID: drawUUID(t, "id"), Line: drawUUID(t, "line"), Position: rapid.Int64Min(0).Draw(t, "position"),
			StoredAt: time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, "at")).UTC(),
			Branch:   rapid.StringN(0, 20, -1).Draw(t, "branch"), Role: rapid.String().Draw(t, "role"),
			Type: rapid.String().Draw(t, "type"), OriginID: rapid.String().Draw(t, "origin"),
			Body: json.RawMessage(`{"text":"}}","n":1.0}`),
		}
		if rapid.Bool().Draw(t, "prev") {
			e.Prev = drawUUID(t, "prev id")
		}
		if rapid.Bool().Draw(t, "created") {
			e.CreatedAt = e.StoredAt.Add(time.Second)
		}
		if rapid.Bool().Draw(t, "source") {
			e.Source = json.RawMessage(`{"format":"x"}`)
		}
		if rapid.Bool().Draw(t, "references") {
			e.References = json.RawMessage(`[{"file":"a]}\u003c","lines":[1,2.0],"later":{}}]`)
		}
		b := e.AppendTo(nil)
		for name, parse := range map[string]func([]byte) (Envelope, error){"Parse": Parse, "ParseTrusted": ParseTrusted, "parseAny": parseAny} {
			got, err := parse(b)
			if err != nil {
				t.Fatalf("%s(%s): %v", name, b, err)
			}
			if d := cmp.Diff(e, got); d != "" {
				t.Fatalf("%s: %s", name, d)
			}
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, b, "", "  "); err != nil {
			t.Fatal(err)
		}
		got, err := Parse(pretty.Bytes())
		if err != nil || !bytes.Equal(got.AppendTo(nil), b) {
			t.Fatalf("a re-indented envelope gives %s, %v", got.AppendTo(nil), err)
		}
	})
}

// TestReferencesOfAnotherKind: references that are no array count as missing, since the message counts more.
func TestReferencesOfAnotherKind(t *testing.T) {
	e := Envelope{ID: uuid.New(), Line: uuid.New(), StoredAt: time.Unix(1, 0), Body: json.RawMessage(`{"a":1}`)}
	e.References = json.RawMessage("[]")
	raw := string(e.AppendTo(nil))
	for _, value := range []string{"7", "null", `"x"`, `{"file":"a"}`} {
		got, err := Parse([]byte(strings.Replace(raw, `"references":[]`, `"references":`+value, 1)))
		if err != nil || got.References != nil || string(got.Body) != `{"a":1}` {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
	if _, err := CompactArray([]byte(`{"a":1}`)); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "expected an array") {
		t.Errorf("an object: %v", err)
	}
}

// TestTimesBeyond: a time of the message's own that was edited and cannot be written in UTC is left out when the
// envelope is written again: nobody could read it.
func TestTimesBeyond(t *testing.T) {
	for _, at := range []string{"9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00+14:00"} {
		raw := `{"ctxdir":"message/1","id":"0a000000-0000-4000-8000-000000000001",` +
			`"line":"0a000000-0000-4000-8000-000000000002","position":0,"prev":null,` +
			`"stored_at":"2026-01-02T03:04:05Z","created_at":"` + at + `","message":{"a":1}}`
		e, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(e.AppendTo(nil)); err != nil || string(again.Body) != `{"a":1}` || !again.CreatedAt.IsZero() {
			t.Errorf("%s: %+v, %v", at, again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	e := Envelope{ID: uuid.New(), Line: uuid.New(), StoredAt: time.Now(), Body: json.RawMessage(`{"a":1}`)}
	good := string(e.AppendTo(nil))
	for name, b := range map[string]string{
		"empty":         "",
		"NUL":           strings.Repeat("\x00", 200),
		"cut":           good[:len(good)-3],
		"cut in head":   good[:60],
		"body no JSON":  strings.Replace(good, `{"a":1}`, `{"a":x}`, 1),
		"body no map":   strings.Replace(good, `{"a":1}`, `[1]`, 1),
		"two":           good + good,
		"invalid UTF-8": strings.Replace(good, `"a"`, "\"\xff\"", 1),
		"no id":         `{"ctxdir":"message/1","line":"` + e.Line.String() + `","position":0,"message":{}}`,
	} {
		if _, err := Parse([]byte(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Parse([]byte(strings.Replace(good, "message/1", "message/2", 1))); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	e := Envelope{ID: uuid.New(), Line: uuid.New(), StoredAt: time.Unix(1, 2), Branch: "main", Role: "user", Body: json.RawMessage(`{"a":1}`)}
	f.Add(e.AppendTo(nil))
	f.Add([]byte(`{"ctxdir":"message/1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(e.AppendTo(nil))
		if err != nil || !bytes.Equal(again.AppendTo(nil), e.AppendTo(nil)) {
			t.Fatalf("%s became %s: %v", e.AppendTo(nil), again.AppendTo(nil), err)
		}
	})
}
