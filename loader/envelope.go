package loader

import (
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/message"
)

// Envelope returns the envelope of the message, for another store: of its place it has line and position. It returns nil for
// an unavailable message.
func (m *Message) Envelope() []byte {
	if m.Unavailable != nil {
		return nil
	}
	e := message.Envelope{
		ID: m.ID, Line: m.Line, Position: m.Position, StoredAt: m.StoredAt, Payloads: blob.Count(m.Stored),
		Role: m.Role, Type: m.Type, CreatedAt: m.CreatedAt, OriginID: m.OriginID, CopyOf: m.CopyOf, Repeats: m.Repeats,
		Source: m.Source, References: m.References, Body: m.Stored,
	}
	return e.AppendTo(make([]byte, 0, len(m.Stored)+512))
}
