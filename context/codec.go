package context

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/object"
	"github.com/google/uuid"
)

// metadataMembers are the known members other than ctxdir, in the order in which they are written. Each writes key and value,
// or nothing where it has no value.
var metadataMembers = []metadataMember{
	{"id", func(m *Metadata, w *object.Writer) { w.ID("id", m.ID) }},
	{"parent_id", func(m *Metadata, w *object.Writer) {
		if m.ParentID == uuid.Nil {
			w.Raw("parent_id", "null")
		} else {
			w.ID("parent_id", m.ParentID)
		}
	}},
	{"title", func(m *Metadata, w *object.Writer) { w.Text("title", m.Title) }},
	{"labels", func(m *Metadata, w *object.Writer) { w.Object("labels", m.Labels) }},
	{"kind", func(m *Metadata, w *object.Writer) { w.Optional("kind", m.Kind) }},
	{"external_id", func(m *Metadata, w *object.Writer) { w.Optional("external_id", m.ExternalID) }},
	{"config", func(m *Metadata, w *object.Writer) {
		w.Key("config")
		w.B = m.Config.AppendTo(w.B)
	}},
	{"active_branch", func(m *Metadata, w *object.Writer) { w.Optional("active_branch", m.ActiveBranch) }},
	{"branches", func(m *Metadata, w *object.Writer) { object.WriteArray(w, "branches", m.Branches, Branch.write) }},
	{"lines", func(m *Metadata, w *object.Writer) { object.WriteArray(w, "lines", m.Lines, Line.write) }},
	{"removed", func(m *Metadata, w *object.Writer) {
		if len(m.Removed) > 0 {
			object.WriteArray(w, "removed", m.Removed, Removed.write)
		}
	}},
	{"state", func(m *Metadata, w *object.Writer) { w.Value("state", m.State) }},
	{"revision", func(m *Metadata, w *object.Writer) { w.Number("revision", m.Revision) }},
	{"created_at", func(m *Metadata, w *object.Writer) { w.Time("created_at", m.CreatedAt) }},
	{"updated_at", func(m *Metadata, w *object.Writer) { w.Time("updated_at", m.UpdatedAt) }},
}

type metadataMember struct {
	key   string
	write func(m *Metadata, w *object.Writer)
}

// MarshalJSON writes the canonical form: known members in a fixed order, then the others.
func (m *Metadata) MarshalJSON() ([]byte, error) {
	w := object.Writer{B: make([]byte, 0, 1<<10+256*len(m.Lines)+128*len(m.Removed))}
	w.Begin()
	w.Text("ctxdir", metadataVersion)
	for _, member := range metadataMembers {
		member.write(m, &w)
	}
	for _, x := range m.Extra.Members() {
		if x.Key != checkMember && x.Key != sumsMember {
			w.Value(x.Key, x.Value)
		}
	}
	w.End()
	return w.B, nil
}

func (b Branch) write(w *object.Writer) {
	w.Text("name", b.Name)
	w.ID("line", b.Line)
	w.Value("system_prompt", b.SystemPrompt)
	w.Members(b.Extra)
}

func (l Line) write(w *object.Writer) {
	w.ID("id", l.ID)
	if l.Parent != uuid.Nil {
		w.ID("parent", l.Parent)
	}
	w.Number("base", l.Base)
	w.Text("folder", l.Folder)
	if l.Archived > 0 {
		w.Number("archived", l.Archived)
		w.Number("archived_bytes", l.ArchivedBytes)
	}
}

func (r Removed) write(w *object.Writer) {
	w.Key("branch")
	w.Begin()
	r.Branch.write(w)
	w.End()
	w.Time("at", r.At)
	w.Text("why", r.Why)
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
	if sums := m.memberSums().Raw(); b.Len()+len(sums) < MaxMetadata-1<<10 { // an older file without them loses its edits
		fmt.Fprintf(&b, "%q: %s,\n  ", sumsMember, sums)
	}
	b.WriteString(checkEnd(b.Bytes()))
	if b.Len() > MaxMetadata {
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMetadata, b.Len(), MaxMetadata)
	}
	return b.Bytes(), nil
}

// RawMetadata encodes metadata for a journal.
func RawMetadata(m *Metadata) json.RawMessage {
	raw, _ := m.MarshalJSON() // never fails
	return raw
}

// ParseMetadata parses metadata.json. It checks what the rest of the program relies on: the version, that every branch
// has a line, that bases and parents are consistent, and that no folder escapes messages/. Its errors wrap ErrMetadata
// or ErrVersion.
func ParseMetadata(b []byte) (*Metadata, error) {
	var o Object
	if err := o.UnmarshalJSON(message.Text(b)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMetadata, err)
	}
	var version string
	if err := o.Take("ctxdir", &version); err != nil || version != metadataVersion {
		if kind, _, _ := strings.Cut(version, "/"); kind != "context" {
			return nil, fmt.Errorf("%w: %q is not a format version", ErrMetadata, version)
		}
		return nil, fmt.Errorf("%w: metadata.json has version %q, expected %q", ErrVersion, version, metadataVersion)
	}
	m := &Metadata{}
	if sum := o.Get(checkMember); sum != nil {
		o.Set(checkMember, nil)
		m.check = string(sum) == checkOf(b[:max(bytes.LastIndex(b, []byte(`"`+checkMember+`"`)), 0)])
	}
	if raw := o.Get(sumsMember); raw != nil {
		o.Set(sumsMember, nil)
		if raw[0] == '{' {
			m.sums = &Object{}
			_ = m.sums.Parse(raw) // a part of the object that was parsed
		}
	}
	read, err := parseMembers(o)
	if err == nil {
		read.check, read.sums = m.check, m.sums
		err = read.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMetadata, err)
	}
	return read, nil
}

// parseMembers parses the members of the metadata, without checks. It takes members out of o.
func parseMembers(o Object) (*Metadata, error) {
	m := &Metadata{}
	var branches, removed []Object
	err := o.TakeAll(m.fields()...)
	if err == nil {
		err = o.TakeAll([]object.Field{
			{Key: "branches", Into: &branches}, {Key: "lines", Into: (*lines)(&m.Lines)}, {Key: "removed", Into: &removed},
		}...)
	}
	if err != nil {
		return nil, err
	}
	m.Extra = o
	for i, o := range removed {
		r, err := removedOf(o)
		if err != nil {
			return nil, fmt.Errorf("removed line %d: %w", i, err)
		}
		m.Removed = append(m.Removed, r)
	}
	for i, o := range branches {
		b, err := branchOf(o)
		if err != nil {
			return nil, fmt.Errorf("branch %d: %w", i, err)
		}
		m.Branches = append(m.Branches, b)
	}
	return m, nil
}

// branchOf takes the branch out of an object.
func branchOf(o Object) (b Branch, err error) {
	err = o.TakeAll([]object.Field{
		{Key: "name", Into: &b.Name}, {Key: "line", Into: &b.Line}, {Key: "system_prompt", Into: &b.SystemPrompt},
	}...)
	b.Extra = o
	return b, err
}

// removedOf takes the removed line out of an object.
func removedOf(o Object) (r Removed, err error) {
	var b Object
	err = o.TakeAll([]object.Field{{Key: "branch", Into: &b}, {Key: "at", Into: &r.At}, {Key: "why", Into: &r.Why}}...)
	if err == nil {
		r.Branch, err = branchOf(b)
	}
	return r, err
}
