package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// legacyMember is the member of metadata.json, and of a branch in it, for whatever has no other place. docs/LEGACY.md
// describes it.
const legacyMember = "legacy"

// Unlisted is the name of the branch with the messages that no branch listed.
const Unlisted = "unlisted"

// Origin is what a context keeps of the legacy context it came from. A member without a value takes it from the
// context; a member with a value keeps it until the context says something else.
type Origin struct {
	format  legacy.Format
	path    string // its old place: absolute, or relative to the store, with slashes
	sum     string // SHA-256 of the original, in hexadecimal
	members legacy.Members
	active  string         // the active branch after the migration: the legacy one may have been missing
	prompt  jsontext.Value // system_prompt.json
}

// keep moves the members of the legacy context into the metadata, and puts the rest into its own member. A member that
// would read differently after a rollback is kept there as well.
func (l *Origin) keep(m *engine.Metadata) error {
	take := func(name string) jsontext.Value { return l.members.Get(name) }
	if id, ok := legacy.ParseID(take("parent_id")); ok {
		m.ParentID = id
	}
	m.Title, _ = legacy.Text(take("title"))
	if config := take("config"); config != nil && config.Kind() == '{' {
		if err := m.Config.UnmarshalJSON(config); err != nil {
			return err
		}
	}
	m.State = json.RawMessage(take("current_state"))
	given := &Origin{}
	for name, i := range l.members.Lasts() {
		member := l.members[i]
		if member.Value == nil {
			continue
		}
		if now := given.now(m, name); now != nil && sameText(now, member.Value) {
			l.members[i].Value = nil
		}
	}
	l.active = m.ActiveBranch
	var o ctxfolder.Object
	o.SetText("format", string(l.format))
	o.SetText("path", l.path)
	o.SetText("sha256", l.sum)
	o.SetText("active", l.active)
	o.Set("members", marshalMembers(l.members))
	o.Set("system_prompt", json.RawMessage(l.prompt))
	raw, err := o.MarshalJSON()
	m.Extra.Set(legacyMember, raw)
	return err
}

// sameText reports whether two values are the same JSON text, but for white space.
func sameText(a, b jsontext.Value) bool {
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	keep := jsontext.PreserveRawStrings(true)
	return errors.Join(
		x.Format(keep, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		y.Format(keep, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))) == nil && bytes.Equal(x, y)
}

func marshalMembers(ms legacy.Members) json.RawMessage {
	raw, _ := ms.MarshalJSON() // cannot fail
	return raw
}

// ParseOrigin returns what a context keeps of the legacy context it came from, nil if it came from none.
func ParseOrigin(m *engine.Metadata) *Origin {
	raw := m.Extra.Get(legacyMember)
	if raw == nil {
		return nil
	}
	ms, err := legacy.MembersOf(jsontext.Value(raw))
	if err != nil {
		return nil
	}
	l := &Origin{prompt: ms.Get("system_prompt")}
	format, _ := legacy.Text(ms.Get("format"))
	l.format = legacy.Format(format)
	l.path, _ = legacy.Text(ms.Get("path"))
	l.sum, _ = legacy.Text(ms.Get("sha256"))
	l.active, _ = legacy.Text(ms.Get("active"))
	if l.members.UnmarshalJSON(ms.Get("members")) != nil || !l.format.Legacy() {
		return nil
	}
	return l
}

// places lists the members that have a place in the context.
var places = []string{"parent_id", "title", "config", "current_state", "active_branch_name"}

// since reports whether the context has a value for a member that the legacy context did not have.
func (l *Origin) since(m *engine.Metadata, name string) bool {
	switch name {
	case "parent_id":
		return m.ParentID != uuid.Nil
	case "title":
		return m.Title != ""
	case "config":
		return len(m.Config.Members()) > 0
	case "current_state":
		return m.State != nil
	}
	return m.ActiveBranch != l.active
}

// value returns a member's present value in the context. kept is the value it was kept with, nil if it was taken over.
func (l *Origin) value(m *engine.Metadata, name string, kept jsontext.Value) jsontext.Value {
	if kept == nil {
		return l.now(m, name)
	}
	changed := false
	switch name {
	case "parent_id":
		changed = m.ParentID != uuid.Nil && !legacy.Equal(kept, quoteID(m.ParentID))
	case "title":
		was, _ := legacy.Text(kept)
		changed = m.Title != was
	case "config":
		var was ctxfolder.Object
		_ = was.UnmarshalJSON(kept) // only an object was taken over
		before, _ := was.MarshalJSON()
		changed = !legacy.Equal(before, l.now(m, name))
	case "current_state":
		changed = m.State != nil && !legacy.Equal(kept, jsontext.Value(m.State))
	case "active_branch_name":
		changed = m.ActiveBranch != l.active
	}
	if changed {
		return l.now(m, name)
	}
	return kept
}

// now returns the context's value for a member of the legacy context, nil if it has none.
func (l *Origin) now(m *engine.Metadata, name string) jsontext.Value {
	switch name {
	case "id":
		return quoteID(m.ID)
	case "parent_id":
		if m.ParentID == uuid.Nil {
			return jsontext.Value("null")
		}
		return quoteID(m.ParentID)
	case "title":
		return legacy.Quote(m.Title)
	case "config":
		raw, err := m.Config.MarshalJSON()
		if err != nil {
			return nil
		}
		return raw
	case "current_state":
		return jsontext.Value(m.State)
	case "active_branch_name":
		if b, ok := m.Branch(m.ActiveBranch); ok {
			return ParseBranchOrigin(b).Key(m, b)
		}
	}
	return nil
}

func quoteID(id uuid.UUID) jsontext.Value { return legacy.Quote(id.String()) }

// BranchOrigin is what a branch keeps of the legacy branch it came from.
type BranchOrigin struct {
	name     jsontext.Value // its key, if that is not the branch's name
	as       string         // its name here, if that is not its key
	members  legacy.Members
	promptOf legacy.Members // system_prompt, if that is an object; "content", without a value, is the branch's
	missing  []legacy.Missing
	Unlisted int64     // not 0: not a legacy branch; the number of messages that no branch listed
	Made     bool      // not a legacy branch: the context had none
	twin     uuid.UUID // the line of another branch with the same key
	line     uuid.UUID // of a branch that is not a legacy one: its line when it was made; as is its name then
}

// takePrompt moves the system prompt out of the members, for the branch. It returns nil if there is no such text.
func (l *BranchOrigin) takePrompt() jsontext.Value {
	i := l.members.Last("system_prompt")
	if i < 0 {
		return nil
	}
	prompt := l.members[i].Value
	if prompt.Kind() == '"' && len(prompt) > len(`""`) {
		l.members[i].Value = nil
		return prompt
	}
	if prompt.Kind() != '{' {
		return nil
	}
	ms, err := legacy.MembersOf(prompt)
	if err != nil {
		return nil
	}
	k := ms.Last("content")
	if k < 0 || ms[k].Value.Kind() != '"' || len(ms[k].Value) <= len(`""`) {
		return nil
	}
	content := ms[k].Value
	ms[k].Value, l.members[i].Value, l.promptOf = nil, nil, ms
	return content
}

// keep puts into the branch's legacy member whatever has no other place.
func (l *BranchOrigin) keep(b *ctxfolder.Branch) {
	var o ctxfolder.Object
	if l.name != nil {
		if i := l.members.Last("name"); i >= 0 && bytes.Equal(l.members[i].Value, l.name) {
			l.members[i].Value = nil
		}
		if !bytes.Equal(l.name, legacy.Quote(b.Name)) {
			o.Set("name", json.RawMessage(l.name))
			o.SetText("as", b.Name)
		}
		if l.twin != uuid.Nil {
			o.SetText("twin", l.twin.String())
		}
		o.Set("members", marshalMembers(l.members))
	}
	if l.promptOf != nil {
		o.Set("system_prompt", marshalMembers(l.promptOf))
	}
	if len(l.missing) > 0 {
		o.Set("missing", marshalMissing(l.missing))
	}
	if l.Unlisted > 0 {
		o.Set("unlisted", json.RawMessage(strconv.FormatInt(l.Unlisted, 10)))
	}
	if l.Made {
		o.Set("made", json.RawMessage("true"))
	}
	if l.Made || l.Unlisted > 0 {
		o.SetText("as", b.Name)
		o.SetText("line", b.Line.String())
	}
	if raw, err := o.MarshalJSON(); err == nil {
		b.Extra.Set(legacyMember, raw)
	}
}

func marshalMissing(missing []legacy.Missing) json.RawMessage {
	b := []byte{'['}
	for i, m := range missing {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"at":`...), int64(m.At), 10)
		b = append(append(append(b, `,"id":`...), m.ID...), '}')
	}
	return append(b, ']')
}

// ParseBranchOrigin returns what a branch keeps of the legacy branch it came from; otherwise the zero value.
func ParseBranchOrigin(b *ctxfolder.Branch) *BranchOrigin {
	l := &BranchOrigin{}
	if raw := b.Extra.Get(legacyMember); raw != nil {
		if ms, err := legacy.MembersOf(jsontext.Value(raw)); err == nil {
			l.name = ms.Get("name")
			l.as, _ = legacy.Text(ms.Get("as"))
			_ = l.members.UnmarshalJSON(ms.Get("members"))
			if p := ms.Get("system_prompt"); p != nil && l.promptOf.UnmarshalJSON(p) != nil {
				l.promptOf = nil
			}
			l.Unlisted, _ = strconv.ParseInt(string(ms.Get("unlisted")), 10, 64)
			l.Made = string(ms.Get("made")) == "true"
			l.twin, _ = legacy.ParseID(ms.Get("twin"))
			l.line, _ = legacy.ParseID(ms.Get("line"))
			_ = json.Unmarshal(ms.Get("missing"), &l.missing)
		}
	}
	return l
}

// Key returns the branch's key in a legacy context: the old name, unless the branch was renamed here, or another branch
// has that name now. Branches that shared a key share it again.
func (l *BranchOrigin) Key(m *engine.Metadata, b *ctxfolder.Branch) jsontext.Value {
	if l.name != nil && l.as == b.Name {
		if old, ok := legacy.Text(l.name); ok {
			if other, taken := m.Branch(old); !taken || other.Line == b.Line || other.Line == l.twin {
				return l.name
			}
		}
	}
	return legacy.Quote(b.Name)
}
