package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
)

// OriginKey is the member of the metadata that says where an imported context comes from.
const OriginKey = "import"

// Members of the metadata's [OriginKey]: the id of the message whose text the title is, and of the erased one with which
// the title went.
const (
	TitleFromKey   = "title_from"
	titleErasedKey = "title_erased"
)

// TitleFrom returns the id of the message from whose text an import made the title, uuid.Nil if there is none.
func TitleFrom(m *Metadata) uuid.UUID { return originID(m, TitleFromKey) }

// TitleErased returns the id of the erased message from whose text the title had been made.
func TitleErased(m *Metadata) uuid.UUID { return originID(m, titleErasedKey) }

func originID(m *Metadata, key string) uuid.UUID {
	var from Object
	if from.UnmarshalJSON(orEmpty(m.Extra.Get(OriginKey))) != nil {
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
func EraseTitle(m *Metadata) {
	var from Object
	if from.UnmarshalJSON(orEmpty(m.Extra.Get(OriginKey))) != nil {
		return
	}
	if m.Title == from.Text("title") {
		m.Title = ""
	}
	from.Set(titleErasedKey, from.Get(TitleFromKey))
	from.Set(TitleFromKey, nil)
	from.Set("title", nil)
	if raw, err := from.MarshalJSON(); err == nil {
		m.Extra.Set(OriginKey, raw)
	}
}

// describe copies into the metadata what a history says about itself. It keeps what the metadata says already, except
// what an earlier import said and a later state of the history says otherwise. It reports whether anything changed;
// stored says that the import stored messages.
func describe(m *Metadata, info importer.Info, stored bool) (changed bool) {
	var from Object
	_ = from.UnmarshalJSON(orEmpty(m.Extra.Get(OriginKey)))
	older := info.Replaces && info.StateAt.Before(originTime(&from, "state_at")) // than the state imported before
	set := func(o *Object, key string, value json.RawMessage, replace bool) {
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
	setTime("updated_at", info.UpdatedAt, info.UpdatedAt.After(originTime(&from, "updated_at")))
	setTime("state_at", info.StateAt, true)
	if info.Extra != nil {
		var stated, extra Object
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
			m.Extra.Set(OriginKey, raw)
		}
	}
	return changed
}

// useOriginTimes gives the row of an imported context the times of its messages in place of those of the import.
// newest is the time at which the newest message was stored: one that came after the import counts.
func useOriginTimes(m *Metadata, newest time.Time, sum *Summary) {
	raw := m.Extra.Get(OriginKey)
	if raw == nil {
		return
	}
	var from Object
	if from.UnmarshalJSON(raw) != nil {
		return
	}
	if at := originTime(&from, "created_at"); !at.IsZero() {
		sum.CreatedAt = at
	}
	updated, imported := originTime(&from, "updated_at"), originTime(&from, "at")
	switch {
	case updated.IsZero() || imported.IsZero():
	case newest.After(imported):
		sum.UpdatedAt = newest
	default:
		sum.UpdatedAt = updated
	}
}

func originTime(o *Object, key string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, o.Text(key))
	if err != nil {
		return time.Time{}
	}
	return at
}

func quoted(s string) json.RawMessage {
	var o ctxfolder.Object
	o.SetText("text", s)
	return o.Get("text")
}

func orEmpty(object json.RawMessage) []byte {
	if object == nil {
		return []byte("{}")
	}
	return object
}
