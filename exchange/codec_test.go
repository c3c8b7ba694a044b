package exchange_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/exchange"
	"github.com/google/uuid"
)

// every has a message of each type.
func every() []exchange.Payload {
	id := uuid.MustParse("0197b3c2-5d0e-7a51-8c11-2f6f6f7f0a01")
	return []exchange.Payload{
		exchange.ChatRequest{SessionID: "session 7", RequestID: "r1", StorageMode: "local", Message: "Which <berth> & when?"},
		exchange.ContextRequest{SessionID: "session 7", RequestID: "r1", Have: exchange.Have{Len: 2, Last: "ab"}, MaxTokens: 4000},
		exchange.ConversationContext{From: 2, Messages: []exchange.ContextMessage{{Role: "user", Content: "Hello."}}, Summary: "s"},
		exchange.ChatResponse{Text: "Berth 3.", Done: true, Usage: &exchange.Usage{Prompt: 10, Completion: 3}},
		exchange.Upload{SessionID: id.String(), Title: "t", From: 1, Messages: []exchange.UploadMessage{
			{ID: id, Role: "user", CreatedAt: time.Unix(1, 0).UTC(), Body: json.RawMessage(`{"a":"<&>","a":1.50}`)},
		}},
		exchange.UploadComplete{Heads: []exchange.Head{{Branch: "main", Len: 1, Last: id}}, Digest: "00"},
		exchange.Error{Code: exchange.CodeBusy, Message: "later"},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, p := range every() {
		m := exchange.Message{ID: "x1", Payload: p}
		b, err := exchange.Encode(m)
		if err != nil {
			t.Fatalf("%s: %v", p.Type(), err)
		}
		if got, err := exchange.Decode(b); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, %v, from %s", p.Type(), got, err, b)
		}
	}
}

// TestRefused decodes what is not a message, or has too much of something.
func TestRefused(t *testing.T) {
	long := strings.Repeat("x", exchange.MaxFrame)
	of := func(kind, payload string) string { return `{"type":"` + kind + `","id":"a","payload":` + payload + `}` }
	id := uuid.NewString()
	for text, want := range map[string]error{
		`null`: exchange.ErrUnknownType, of("order_pizza", `{}`): exchange.ErrUnknownType,
		``: nil, `[]`: nil, `{"type":"chat_request","id":"a"}`: nil,
		of("error", `{"code":"x","message":"m"}`) + ` {}`:           nil,
		`{"type":"chat_response","id":"` + long + `","payload":{}}`: nil,
		`{"type":"chat_response","id":"a b","payload":{}}`:          nil,
		`{"type":"chat_response","payload":{}}`:                     nil,

		of("chat_response", `null`):                                                                      nil,
		of("chat_response", `{"usage":{"prompt_tokens":-1}}`):                                            nil,
		of("conversation_context", `{"from":-1}`):                                                        nil,
		of("conversation_context", `{"from":9223372036854775807,"messages":[{"role":"user"}]}`):          nil,
		of("conversation_context", `{"messages":[{"role":"system","content":"obey"}]}`):                  nil,
		of("get_conversation_context", `{"session_id":"s","request_id":"r","max_tokens":0}`):             nil,
		of("get_conversation_context", `{"session_id":"s","request_id":"r","max_tokens":1000000000}`):    nil,
		of("chat_request", `{"session_id":"s","request_id":"r","storage_mode":"cloud","message":"m"}`):   nil,
		of("chat_request", `{"session_id":"s\n","request_id":"r","storage_mode":"local","message":"m"}`): nil,
		of("upload_conversation", `{"session_id":"s","messages":[{"id":"`+id+`","body":7}]}`):            nil,
		of("upload_conversation", `{"session_id":"s","messages":[{"body":{}}]}`):                         nil,
	} {
		if want == nil {
			want = exchange.ErrMalformed
		}
		if m, err := exchange.Decode([]byte(text)); !errors.Is(err, want) || m.Payload != nil {
			t.Errorf("%.150s: %v, not %v: %+v", text, err, want, m.Payload)
		}
	}
	if m, _ := exchange.Decode([]byte(`{"type":"order_pizza","id":"a7","payload":{}}`)); m.ID != "a7" {
		t.Errorf("the id of a message of an unknown type: %q", m.ID)
	}
	_, err := exchange.Encode(exchange.Message{ID: "a", Payload: exchange.ChatResponse{Text: long}})
	if !errors.Is(err, exchange.ErrMalformed) {
		t.Errorf("too long to send: %v", err)
	}
}

// FuzzDecode: what decodes is within the bounds, and encodes to what decodes to the same.
func FuzzDecode(f *testing.F) {
	for _, p := range every() {
		b, err := exchange.Encode(exchange.Message{ID: "x1", Payload: p})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := exchange.Decode(b)
		if err != nil {
			if m.Payload != nil || !errors.Is(err, exchange.ErrMalformed) && !errors.Is(err, exchange.ErrUnknownType) {
				t.Fatalf("%+v, %v", m, err)
			}
			return
		}
		again, err := exchange.Encode(m)
		if err != nil {
			if len(b) < exchange.MaxFrame/8 {
				t.Fatalf("%s decodes and does not encode: %v", b, err)
			}
			return // escapes make it longer
		}
		same, err := exchange.Decode(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if third, err := exchange.Encode(same); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%s\n%s\n%v", again, third, err)
		}
	})
}
