package context

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/object"
	"github.com/google/uuid"
)

// AnyKind stands for every kind in the options of a list.
const AnyKind = "*"

// MaxExternalID bounds an external id, in bytes.
const MaxExternalID = 4 << 10

// MaxKind bounds a kind, in bytes.
const MaxKind = 256

// Names returns the members by which lists find a context: its labels, kind and external id.
func (m *Metadata) Names() (o Object) {
	w := object.Writer{}
	w.Begin()
	w.Object("labels", m.Labels)
	w.Optional("kind", m.Kind)
	w.Optional("external_id", m.ExternalID)
	w.End()
	_ = o.UnmarshalJSON(w.B) // never fails: the engine wrote it
	return o
}

// externalSpace is the namespace of the ids of contexts with an external id.
var externalSpace = uuid.MustParse("1cede0c1-f071-512d-8543-20f71160cc56")

// ExternalContextID returns the id of the context with a kind and an external id: the same in every store.
func ExternalContextID(kind, external string) uuid.UUID {
	return message.DerivedID(externalSpace, kind+"\x00"+external)
}

// TakeExternalID sets the id that an external id requires. It fails if the metadata has another one.
func (m *Metadata) TakeExternalID() error {
	if err := m.CheckNames(); err != nil || m.ExternalID == "" {
		return err
	}
	id := ExternalContextID(m.Kind, m.ExternalID)
	if m.ID != uuid.Nil && m.ID != id {
		return fmt.Errorf("id %s: external id %q requires id %s", m.ID, m.ExternalID, id)
	}
	m.ID = id
	return nil
}

// CheckNames reports why the kind or the external id cannot be stored.
func (m *Metadata) CheckNames() error {
	switch {
	case len(m.Kind) > MaxKind || !utf8.ValidString(m.Kind) || strings.ContainsAny(m.Kind, "/\x00") || m.Kind == AnyKind:
		return fmt.Errorf("kind %.40q: must be at most %d bytes of valid UTF-8, without slash or NUL, and not *", m.Kind, MaxKind)
	case len(m.ExternalID) > MaxExternalID || !utf8.ValidString(m.ExternalID):
		return fmt.Errorf("external id: must be at most %d bytes of valid UTF-8", MaxExternalID)
	}
	return nil
}
