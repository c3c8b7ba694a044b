// Package exchange is the conversation between an agent and a team's server: the agent sends a question, and the server
// streams the answer of a model. In local mode the server knows nothing of the conversation. It asks the agent for a
// context, and gets a summary without code, paths and names. In server mode it has the conversation, and assembles the
// context itself.
//
//	c := exchange.NewClient(exchange.ClientOptions{URL: url, Token: token, Source: exchange.NewLocal(store)})
//	answer, err := c.Ask(ctx, exchange.ChatRequest{
//		SessionID: id.String(), RequestID: "1", StorageMode: ctxdir.StorageLocal, Message: "Which berths are free?",
//	}, func(text string) { fmt.Print(text) })
//
// The two sides exchange messages {type, id, payload} over one WebSocket. docs/EXCHANGE.md describes them.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package exchange

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Path is where a server has the WebSocket, and Subprotocol its subprotocol.
const (
	Path        = "/v1/exchange"
	Subprotocol = "ctxdir.v1"
)

// Bounds of messages. Both sides refuse more.
const (
	MaxFrame    = 1 << 20   // bytes of a message
	MaxID       = 64        // bytes of an id, and of a request id
	MaxSession  = 256       // bytes of a session id
	MaxQuestion = 256 << 10 // bytes of the message of a chat request
	MaxMessages = 1000      // of a context, and of an upload
	MaxTokens   = 200_000   // of a context
	MaxAnswer   = 1 << 20   // bytes of an answer
)

// Message is one message of the exchange. Who asks chooses the id; every answer to the question has it.
type Message struct {
	ID      string
	Payload Payload
}

// Payload is the content of a message: one of the types of this package that have a name in the protocol.
type Payload interface {
	// Type is the name of the message in the protocol.
	Type() string
	check() error
}

// ChatRequest asks for an answer. The same SessionID and RequestID are the same request: it gets the same answer.
type ChatRequest struct {
	SessionID   string `json:"session_id"`   // the id of a context, or its external id
	RequestID   string `json:"request_id"`   // chosen by the agent, unique in the session
	StorageMode string `json:"storage_mode"` // ctxdir.StorageLocal or ctxdir.StorageServer
	Message     string `json:"message"`      // the question
}

// ContextRequest asks the agent for the context of a request in local mode.
type ContextRequest struct {
	SessionID string `json:"session_id"`
	RequestID string `json:"request_id"`
	Have      Have   `json:"have"`
	MaxTokens int    `json:"max_tokens"`
}

// Have says what the server still has of earlier answers. Only the rest needs to travel.
type Have struct {
	Len  int    `json:"len"`            // the number of messages
	Last string `json:"last,omitempty"` // [Chain] of them
}

// ConversationContext answers a [ContextRequest].
type ConversationContext struct {
	From     int              `json:"from"`              // the number of messages that the server keeps of those that it has
	Messages []ContextMessage `json:"messages"`          // those after them
	Summary  string           `json:"summary,omitempty"` // of what is older, for this request
}

// ContextMessage is what may leave of a message.
type ContextMessage struct {
	Role    string `json:"role"` // user or assistant
	Content string `json:"content"`
}

// ChatResponse is a piece of an answer. The last one has Done, and the text of all pieces is the answer.
type ChatResponse struct {
	Text  string `json:"text,omitempty"`
	Done  bool   `json:"done,omitempty"`
	Usage *Usage `json:"usage,omitempty"` // with Done
}

// Usage is the number of tokens of a request. Without numbers of the model, they are estimated.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Estimated  bool  `json:"estimated,omitempty"`
}

// Upload brings messages of a conversation to the server. Without messages, it asks what the server has.
type Upload struct {
	SessionID string          `json:"session_id"`
	Title     string          `json:"title,omitempty"` // of a context that is new to the server
	From      int64           `json:"from"`            // the position of the first message
	Messages  []UploadMessage `json:"messages,omitempty"`
}

// UploadMessage is a message as it is stored.
type UploadMessage struct {
	ID        uuid.UUID       `json:"id"`
	Role      string          `json:"role,omitempty"`
	Kind      string          `json:"type,omitempty"`
	CreatedAt time.Time       `json:"created_at,omitzero"`
	Body      json.RawMessage `json:"body"`
}

// UploadComplete says what the server has, after it read it back.
type UploadComplete struct {
	Heads []Head `json:"heads"` // the active branch first
	// Digest is the [Digest] of the messages of the upload. If it has none, it is of those from its position to the end of the
	// active branch.
	Digest string `json:"digest"`
}

// Head is the end of a branch.
type Head struct {
	Branch string    `json:"branch"`
	Len    int64     `json:"len"`
	Last   uuid.UUID `json:"last"` // the id of the newest message, zero if there is none
}

// Error answers a message that cannot be answered otherwise. Without an id, it is about the connection.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"` // for people
}

func (e *Error) Error() string { return e.Message }

// Codes of errors.
const (
	CodeInvalid     = "invalid"      // the message is not valid
	CodeUnknownType = "unknown_type" // this side does not know the type of the message
	CodeNotAsked    = "not_asked"    // there is no request to which the message belongs
	CodeNotFound    = "not_found"    // the server has no such conversation
	CodeConflict    = "conflict"     // the request id or the position belongs to something else
	CodeBusy        = "busy"         // too much at once: repeat the request later
	CodeTimeout     = "timeout"      // the other side took too long
	CodeNoModel     = "no_model"     // the server has no model to ask
	CodeModel       = "model_failed" // the model gave no usable answer: repeat the request
	CodeNoSpace     = "no_space"     // the quota is used up
	CodeFailed      = "failed"       // the server failed: repeat the request
)

// Type returns chat_request.
func (ChatRequest) Type() string { return "chat_request" }

// Type returns get_conversation_context.
func (ContextRequest) Type() string { return "get_conversation_context" }

// Type returns conversation_context.
func (ConversationContext) Type() string { return "conversation_context" }

// Type returns chat_response.
func (ChatResponse) Type() string { return "chat_response" }

// Type returns upload_conversation.
func (Upload) Type() string { return "upload_conversation" }

// Type returns upload_complete.
func (UploadComplete) Type() string { return "upload_complete" }

// Type returns error.
func (Error) Type() string { return "error" }
