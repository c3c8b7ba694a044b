package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Errors of [Decode].
var (
	ErrMalformed   = errors.New("the message is not valid")
	ErrUnknownType = errors.New("the type of the message is unknown")
)

type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Payload json.RawMessage `json:"payload"`
}

// Encode returns a message as it travels, in at most [MaxFrame] bytes. The error wraps [ErrMalformed].
func Encode(m Message) ([]byte, error) {
	if err := check(m); err != nil {
		return nil, err
	}
	payload, err := encode(m.Payload)
	if err != nil {
		return nil, err
	}
	b, err := encode(frame{m.Payload.Type(), m.ID, payload})
	if err == nil && len(b) > MaxFrame {
		err = malformed("it has %d bytes, more than %d", len(b), MaxFrame)
	}
	return b, err
}

// encode writes JSON without escapes of <, > and &, so that bodies stay as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode reads a message. The error wraps [ErrMalformed] or [ErrUnknownType]; the message then has the id, if it is a valid one.
// Unknown members are ignored.
func Decode(b []byte) (m Message, err error) {
	var f frame
	if len(b) > MaxFrame {
		return m, malformed("it has %d bytes, more than %d", len(b), MaxFrame)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return m, malformed("it is not a JSON object with type, id and payload")
	}
	if isID(f.ID) {
		m.ID = f.ID
	}
	switch f.Type {
	case ChatRequest{}.Type():
		m.Payload, err = payload[ChatRequest](f.Payload)
	case ContextRequest{}.Type():
		m.Payload, err = payload[ContextRequest](f.Payload)
	case ConversationContext{}.Type():
		m.Payload, err = payload[ConversationContext](f.Payload)
	case ChatResponse{}.Type():
		m.Payload, err = payload[ChatResponse](f.Payload)
	case Upload{}.Type():
		m.Payload, err = payload[Upload](f.Payload)
	case UploadComplete{}.Type():
		m.Payload, err = payload[UploadComplete](f.Payload)
	case Error{}.Type():
		m.Payload, err = payload[Error](f.Payload)
	default:
		return m, ErrUnknownType
	}
	if err == nil && m.ID != f.ID {
		err = malformed("its id is not one")
	}
	if err == nil {
		err = check(m)
	}
	if err != nil {
		m.Payload = nil
	}
	return m, err
}

func payload[P Payload](b json.RawMessage) (Payload, error) {
	var p P
	if len(b) == 0 || b[0] != '{' {
		return nil, malformed("its payload is not an object")
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, malformed("its payload does not fit the type")
	}
	return p, nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// check fails with [ErrMalformed].
func check(m Message) error {
	if _, isError := m.Payload.(Error); !isID(m.ID) && (!isError || m.ID != "") {
		return malformed("its id is not one: expected 1 to %d printable characters of ASCII", MaxID)
	}
	return m.Payload.check()
}

// isID reports whether a text is an id.
func isID(id string) bool {
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return id != "" && len(id) <= MaxID
}

func checkSession(id string) error {
	if id == "" || len(id) > MaxSession || !isText(id) {
		return malformed("session_id: expected 1 to %d bytes without control characters", MaxSession)
	}
	return nil
}

func isText(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

func (p ChatRequest) check() error {
	switch {
	case !isID(p.RequestID):
		return malformed("request_id: expected 1 to %d printable characters of ASCII", MaxID)
	case p.StorageMode != ctxdir.StorageLocal && p.StorageMode != ctxdir.StorageServer:
		return malformed("storage_mode: expected %s or %s", ctxdir.StorageLocal, ctxdir.StorageServer)
	case p.Message == "" || len(p.Message) > MaxQuestion:
		return malformed("message: expected 1 to %d bytes", MaxQuestion)
	}
	return checkSession(p.SessionID)
}

func (p ContextRequest) check() error {
	switch {
	case !isID(p.RequestID):
		return malformed("request_id: expected 1 to %d printable characters of ASCII", MaxID)
	case p.Have.Len < 0 || p.Have.Len > MaxMessages || len(p.Have.Last) > MaxID:
		return malformed("have: expected up to %d messages", MaxMessages)
	case p.MaxTokens < 1 || p.MaxTokens > MaxTokens:
		return malformed("max_tokens: expected 1 to %d", MaxTokens)
	}
	return checkSession(p.SessionID)
}

func (p ConversationContext) check() error {
	if p.From < 0 || p.From+len(p.Messages) > MaxMessages || p.From > MaxMessages {
		return malformed("a context has at most %d messages", MaxMessages)
	}
	for _, m := range p.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return malformed("role: expected user or assistant")
		}
	}
	return nil
}

func (p ChatResponse) check() error {
	if u := p.Usage; u != nil && (u.Prompt < 0 || u.Completion < 0) {
		return malformed("usage: expected numbers of tokens")
	}
	return nil
}

func (p Upload) check() error {
	if p.From < 0 || len(p.Messages) > MaxMessages {
		return malformed("an upload has at most %d messages", MaxMessages)
	}
	if len(p.Title) > 4*MaxSession {
		return malformed("title: expected up to %d bytes", 4*MaxSession)
	}
	for _, m := range p.Messages {
		if m.ID == uuid.Nil || len(m.Body) == 0 || m.Body[0] != '{' || len(m.Role) > MaxID || len(m.Kind) > MaxID {
			return malformed("messages: each needs an id and a body, which is an object")
		}
	}
	return checkSession(p.SessionID)
}

func (p UploadComplete) check() error {
	if len(p.Heads) > MaxMessages || len(p.Digest) > MaxID {
		return malformed("expected up to %d heads and a digest", MaxMessages)
	}
	return nil
}

func (p Error) check() error {
	if !isID(p.Code) || len(p.Message) > 4*MaxSession {
		return malformed("expected a code, and a message of up to %d bytes", 4*MaxSession)
	}
	return nil
}
