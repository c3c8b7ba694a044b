package context

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
)

// metadataMembers are the known members besides ctxdir, in the order in which they are written. Each writes key and value,
// or nothing where it has no value.
var metadataMembers = []metadataMember{
	{"id", func(m *Metadata, w *objectWriter) { w.id("id", m.ID) }},
	{"parent_id", func(m *Metadata, w *objectWriter) {
		if m.ParentID == uuid.Nil {
			w.raw("parent_id", "null")
		} else {
			w.id("parent_id", m.ParentID)
		}
	}},
	{"title", func(m *Metadata, w *objectWriter) { w.text("title", m.Title) }},
	{"labels", func(m *Metadata, w *objectWriter) { w.object("labels", m.Labels) }},
	{"kind", func(m *Metadata, w *objectWriter) { w.optional("kind", m.Kind) }},
	{"external_id", func(m *Metadata, w *objectWriter) { w.optional("external_id", m.ExternalID) }},
	{"config", func(m *Metadata, w *objectWriter) {
		w.key("config")
		w.b = m.Config.appendTo(w.b)
	}},
	{"active_branch", func(m *Metadata, w *objectWriter) { w.optional("active_branch", m.ActiveBranch) }},
	{"branches", func(m *Metadata, w *objectWriter) { writeArray(w, "branches", m.Branches, Branch.write) }},
	{"lines", func(m *Metadata, w *objectWriter) { writeArray(w, "lines", m.Lines, Line.write) }},
	{"removed", func(m *Metadata, w *objectWriter) {
		if len(m.Removed) > 0 {
			writeArray(w, "removed", m.Removed, Removed.write)
		}
	}},
	{"state", func(m *Metadata, w *objectWriter) { w.value("state", m.State) }},
	{"revision", func(m *Metadata, w *objectWriter) { w.number("revision", m.Revision) }},
	{"created_at", func(m *Metadata, w *objectWriter) { w.time("created_at", m.CreatedAt) }},
	{"updated_at", func(m *Metadata, w *objectWriter) { w.time("updated_at", m.UpdatedAt) }},
}

type metadataMember struct {
	key   string
	write func(m *Metadata, w *objectWriter)
}

// MarshalJSON writes the canonical form: known members in a fixed order, then the others.
func (m *Metadata) MarshalJSON() ([]byte, error) {
	w := objectWriter{make([]byte, 0, 1<<10+256*len(m.Lines)+128*len(m.Removed))}
	w.begin()
	w.text("ctxdir", metadataVersion)
	for _, member := range metadataMembers {
		member.write(m, &w)
	}
	for _, x := range m.Extra.members {
		if x.Key != checkMember && x.Key != sumsMember {
			w.value(x.Key, x.Value)
		}
	}
	w.end()
	return w.b, nil
}

func (b Branch) write(w *objectWriter) {
	w.text("name", b.Name)
	w.id("line", b.Line)
	w.value("system_prompt", b.SystemPrompt)
	w.members(b.Extra)
}

func (l Line) write(w *objectWriter) {
	w.id("id", l.ID)
	if l.Parent != uuid.Nil {
		w.id("parent", l.Parent)
	}
	w.number("base", l.Base)
	w.text("folder", l.Folder)
	if l.Archived > 0 {
		w.number("archived", l.Archived)
		w.number("archived_bytes", l.ArchivedBytes)
	}
}

func (r Removed) write(w *objectWriter) {
	w.id("line", r.Line)
	w.text("name", r.Name)
	w.time("at", r.At)
	w.text("why", r.Why)
}

// checkMember is the last member of metadata.json: the checksum of everything before it. A person who edits the file
// leaves it wrong, which is how the engine notices.
const checkMember = "check"

func checkOf(b []byte) string { return fmt.Sprintf("\"%016x\"", xxhash.Sum64(b)) }

// checkEnd returns the end of a metadata.json that begins with b.
func checkEnd(b []byte) string { return `"` + checkMember + `": ` + checkOf(b) + "\n}\n" }

// Encode returns the bytes of metadata.json, indented for people.
func (m *Metadata) Encode() ([]byte, error) {
	raw, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMetadata, err)
	}
	b.Truncate(b.Len() - len("\n}"))
	b.WriteString(",\n  ")
	if sums := m.memberSums().raw(); b.Len()+len(sums) < MaxMetadata-1<<10 { // an older file without them loses its edits
		fmt.Fprintf(&b, "%q: %s,\n  ", sumsMember, sums)
	}
	b.WriteString(checkEnd(b.Bytes()))
	if b.Len() > MaxMetadata {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrMetadata, b.Len(), MaxMetadata)
	}
	return b.Bytes(), nil
}
