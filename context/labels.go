package context

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/message"
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
	w := objectWriter{}
	w.begin()
	w.object("labels", m.Labels)
	w.optional("kind", m.Kind)
	w.optional("external_id", m.ExternalID)
	w.end()
	_ = o.UnmarshalJSON(w.b) // never fails: the engine wrote it
	return o
}

// Texts returns the members of the object whose value is a text, nil without one.
func (o Object) Texts() map[string]string {
	var texts map[string]string
	for _, m := range o.members {
		if len(m.Value) == 0 || m.Value[0] != '"' {
			continue
		}
		if texts == nil {
			texts = make(map[string]string, len(o.members))
		}
		texts[m.Key] = o.Text(m.Key)
	}
	return texts
}

// SetTexts makes texts the members whose value is a text. It keeps the order and spelling of those that stay equal, and
// the members with other values.
func (o *Object) SetTexts(texts map[string]string) error {
	for key, text := range texts {
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(text) {
			return fmt.Errorf("label %q=%q: the name is empty, or not all is valid UTF-8", key, text)
		}
	}
	was := o.Texts()
	for key := range was {
		if _, ok := texts[key]; !ok {
			o.Set(key, nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if now, ok := was[key]; !ok || now != texts[key] {
			o.Set(key, quoted(texts[key]))
		}
	}
	return nil
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
		return fmt.Errorf("kind %.40q: longer than %d bytes, not valid UTF-8, with a slash or NUL, or *", m.Kind, MaxKind)
	case len(m.ExternalID) > MaxExternalID || !utf8.ValidString(m.ExternalID):
		return fmt.Errorf("external id: longer than %d bytes, or not valid UTF-8", MaxExternalID)
	}
	return nil
}
