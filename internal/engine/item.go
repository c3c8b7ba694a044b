package engine

import (
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
)

// Item is a record to commit.
type Item struct {
	journal.Item
	Envelope *message.Envelope // of a message that gets a file, without its content
	Payload  []byte            // of a payload
	Sum      blob.Sum          // of a payload
}

// MessageItem returns the record of a message, or of another version of one, which had was bytes: its canonical envelope is
// raw.
func MessageItem(kind journal.Kind, env *message.Envelope, raw []byte, was int64) Item {
	return Item{Item: journal.Item{Kind: kind, Body: raw, Was: was}, Envelope: env}
}

func payloadItem(sum blob.Sum, payload []byte) Item {
	return Item{Item: index.PayloadItem(sum, payload), Payload: payload, Sum: sum}
}
