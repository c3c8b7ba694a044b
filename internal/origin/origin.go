// Package origin keeps what the metadata of an imported context says about where it comes from: the member "import".
package origin

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
)

// Key is the member of the metadata that says where an imported context comes from.
const Key = "import"

// ToolLabel is the label that names the program in which a conversation took place.
const ToolLabel = "tool"

// Members of the metadata's [Key]: the id of the message whose text the title is, and of the erased one with which
// the title went.
const (
	TitleFromKey   = "title_from"
	titleErasedKey = "title_erased"
)

// TitleFrom returns the id of the message from whose text an import made the title, uuid.Nil if there is none.
func TitleFrom(m *context.Metadata) uuid.UUID { return idOf(m, TitleFromKey) }

// TitleErased returns the id of the erased message from whose text the title had been made.
func TitleErased(m *context.Metadata) uuid.UUID { return idOf(m, titleErasedKey) }

func idOf(m *context.Metadata, key string) uuid.UUID {
	var from context.Object
	if from.UnmarshalJSON(orEmpty(m.Extra.Get(Key))) != nil {
		return uuid.Nil
	}
	id, err := uuid.Parse(from.Text(key))
	if err != nil {
		return uuid.Nil
	}
	return id
}

// EraseTitle removes the title that an import made from a message. No import brings it back. A title that a person chose
// stays.
func EraseTitle(m *context.Metadata) {
	var from context.Object
	if from.UnmarshalJSON(orEmpty(m.Extra.Get(Key))) != nil {
		return
	}
	if m.Title == from.Text("title") {
		m.Title = ""
	}
	from.Set(titleErasedKey, from.Get(TitleFromKey))
	from.Set(TitleFromKey, nil)
	from.Set("title", nil)
	if raw, err := from.MarshalJSON(); err == nil {
		m.Extra.Set(Key, raw)
	}
}

// Describe copies into the metadata what a history says about itself. It keeps what the metadata says already, except
// what an earlier import said and a later state of the history says otherwise. It reports whether anything changed;
// stored says that the import stored messages.
func Describe(m *context.Metadata, info importer.Info, stored bool) (changed bool) {
	var from context.Object
	_ = from.UnmarshalJSON(orEmpty(m.Extra.Get(Key)))
	older := info.Replaces && info.StateAt.Before(timeOf(&from, "state_at")) // than the state imported before
	set := func(o *context.Object, key string, value json.RawMessage, replace bool) {
		now := o.Get(key)
		if now == nil || replace && !older && !bytes.Equal(now, value) {
			o.Set(key, value)
			changed = true
		}
	}
	if info.TitleFrom != uuid.Nil && info.TitleFrom.String() == from.Text(titleErasedKey) {
		info.Title = ""
	}
	if info.Title != "" && !older && m.Title != info.Title && (m.Title == "" || m.Title == from.Text("title")) {
		m.Title, changed = info.Title, true
	}
	if info.Title != "" {
		set(&from, "title", quoted(info.Title), true)
		if info.TitleFrom != uuid.Nil {
			set(&from, TitleFromKey, quoted(info.TitleFrom.String()), true)
		} else if from.Get(TitleFromKey) != nil {
			set(&from, TitleFromKey, nil, true)
		}
	}
	if info.Model != "" {
		set(&m.Config, "model_id", quoted(info.Model), false)
	}
	set(&m.Labels, ToolLabel, quoted(string(info.Format)), false)
	for _, key := range slices.Sorted(maps.Keys(info.Labels)) {
		set(&m.Labels, key, quoted(info.Labels[key]), false)
	}
	if m.ParentID == uuid.Nil && info.Parent != uuid.Nil && info.Parent != m.ID {
		m.ParentID, changed = info.Parent, true
	}
	set(&from, "format", quoted(string(info.Format)), false)
	if info.Session != "" {
		set(&from, "session", quoted(info.Session), false)
	}
	setTime := func(key string, at time.Time, replace bool) {
		if !at.IsZero() {
			set(&from, key, quoted(at.UTC().Format(time.RFC3339Nano)), replace)
		}
	}
	setTime("created_at", info.CreatedAt, false)
	setTime("updated_at", info.UpdatedAt, info.UpdatedAt.After(timeOf(&from, "updated_at")))
	setTime("state_at", info.StateAt, true)
	if info.Extra != nil {
		var stated, extra context.Object
		_ = stated.UnmarshalJSON(info.Extra)
		_ = extra.UnmarshalJSON(orEmpty(from.Get("extra")))
		for _, member := range stated.Members() {
			set(&extra, member.Key, member.Value, info.Replaces)
		}
		if raw, err := extra.MarshalJSON(); err == nil {
			from.Set("extra", raw)
		}
	}
	if changed = changed || stored; changed {
		from.Set("at", quoted(time.Now().UTC().Format(time.RFC3339Nano)))
		if raw, err := from.MarshalJSON(); err == nil {
			m.Extra.Set(Key, raw)
		}
	}
	return changed
}

// Times are the times that the metadata of an imported context has; zero for what it does not say.
type Times struct {
	Created  time.Time // of the conversation's first message
	Updated  time.Time // of its last one
	State    time.Time // of the state that was imported, where a history has several
	Imported time.Time
}

// TimesOf returns the times of an imported context.
func TimesOf(m *context.Metadata) Times {
	var from context.Object
	if from.UnmarshalJSON(orEmpty(m.Extra.Get(Key))) != nil {
		return Times{}
	}
	return Times{timeOf(&from, "created_at"), timeOf(&from, "updated_at"), timeOf(&from, "state_at"), timeOf(&from, "at")}
}

func timeOf(o *context.Object, key string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, o.Text(key))
	if err != nil {
		return time.Time{}
	}
	return at
}

func quoted(s string) json.RawMessage {
	var o context.Object
	o.SetText("text", s)
	return o.Get("text")
}

func orEmpty(object json.RawMessage) []byte {
	if object == nil {
		return []byte("{}")
	}
	return object
}
