package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/google/uuid"
)

// Chain returns a checksum of messages of a context, by which both sides find out whether they have the same ones.
func Chain(messages []ContextMessage) string {
	h := sha256.New()
	for _, m := range messages {
		for _, s := range []string{m.Role, m.Content} {
			one := sha256.Sum256([]byte(s))
			_, _ = h.Write(one[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Extend returns the messages of a context after an answer, of which held are the messages that the server has. It fails with
// [ErrMalformed] if the answer begins after them. The result shares nothing with held that is changed.
func Extend(held []ContextMessage, c ConversationContext) ([]ContextMessage, error) {
	if c.From > len(held) {
		return nil, malformed("from: %d of %d messages", c.From, len(held))
	}
	return append(held[:c.From:c.From], c.Messages...), nil
}

// Digest is a checksum of stored messages: the SHA-256 of the id and of the SHA-256 of the body of each. Equal digests on
// two machines mean equal messages in the same order.
type Digest struct{ h hash.Hash }

// NewDigest returns the digest of no message.
func NewDigest() Digest { return Digest{sha256.New()} }

// Add adds a message.
func (d Digest) Add(id uuid.UUID, body []byte) {
	sum := sha256.Sum256(body)
	_, _ = d.h.Write(id[:])
	_, _ = d.h.Write(sum[:])
}

// String returns the digest in hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d.h.Sum(nil)) }

// QuestionID and AnswerID are the ids of the two messages that a request in server mode appends to its context, by the id of the
// context and that of the request. An agent that stores them, too, uses the same ids.
func QuestionID(context uuid.UUID, requestID string) uuid.UUID {
	return messageID(context, "question", requestID)
}

// AnswerID is described at [QuestionID].
func AnswerID(context uuid.UUID, requestID string) uuid.UUID {
	return messageID(context, "answer", requestID)
}

func messageID(context uuid.UUID, what, requestID string) uuid.UUID {
	return uuid.NewSHA1(context, []byte("exchange/"+what+"/"+requestID))
}
