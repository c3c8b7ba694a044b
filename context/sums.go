package context

import (
	"encoding/json"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// sumsMember is the member of metadata.json that says what the engine wrote: the metadata's members that a person may
// edit, with the checksum of each value in place of the value, and with the branches by line. A value with another
// checksum is an edit, however old the file is: no log need have its revision.
const sumsMember = "member_sums"

// summedMembers are the known members of the metadata in the member of the sums. The others are unknown members.
var summedMembers = []string{"title", "parent_id", "labels", "config", "active_branch", "branches", "state"}

// memberSums returns the value of sumsMember for the metadata.
func (m *Metadata) memberSums() (sums Object) {
	add := func(key string, value json.RawMessage) { sums.members = append(sums.members, Member{key, value}) }
	add("title", valueSum(quoted(m.Title)))
	if m.ParentID != uuid.Nil {
		add("parent_id", valueSum(quoted(m.ParentID.String())))
	}
	if len(m.Labels.members) > 0 {
		add("labels", m.Labels.sums().raw())
	}
	if len(m.Config.members) > 0 {
		add("config", m.Config.sums().raw())
	}
	add("active_branch", valueSum(quoted(m.ActiveBranch)))
	branches := Object{make([]Member, len(m.Branches))}
	for i := range m.Branches {
		branches.members[i] = Member{m.Branches[i].Line.String(), m.Branches[i].memberSums().raw()}
	}
	add("branches", branches.raw())
	if m.State != nil {
		add("state", valueSum(m.State))
	}
	sums.members = append(sums.members, m.Extra.sums().members...)
	return sums
}

func (b *Branch) memberSums() (sums Object) {
	sums.members = append(sums.members, Member{"name", valueSum(quoted(b.Name))})
	if b.SystemPrompt != nil {
		sums.members = append(sums.members, Member{"system_prompt", valueSum(b.SystemPrompt)})
	}
	sums.members = append(sums.members, b.Extra.sums().members...)
	return sums
}

// sums returns the object with checksums in place of the values.
func (o Object) sums() Object {
	sums := Object{make([]Member, len(o.members))}
	for i, m := range o.members {
		sums.members[i] = Member{m.Key, valueSum(m.Value)}
	}
	return sums
}

// object returns the value of key if it is an object, else an empty one.
func (o Object) object(key string) (value Object) {
	if raw := o.Get(key); raw != nil && raw[0] == '{' {
		_ = value.parse(raw) // a part of an object that was parsed
	}
	return value
}

// objects returns the members that are objects.
func (o Object) objects() map[string]Object {
	all := make(map[string]Object, len(o.members))
	for _, m := range o.members {
		if m.Value[0] == '{' {
			all[m.Key] = o.object(m.Key)
		}
	}
	return all
}

// oneSpelling are the options that give equal values one text: the form of RFC 8785, but an integer keeps its digits,
// since two long ones are the same double-precision number.
var oneSpelling = []jsontext.Options{
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
	jsontext.ReorderRawObjects(true),
	jsontext.CanonicalizeRawInts(false),
	jsontext.CanonicalizeRawFloats(true),
}

// valueSum returns the checksum of a JSON value, as a JSON string. Programs that rewrite a file spell what they do not
// change in their own way, which must not be an edit.
func valueSum(v json.RawMessage) json.RawMessage {
	if text, ok := plainText(v); !ok || !isPlain(string(text)) { // else it is that text
		if one, err := jsontext.AppendFormat(nil, v, oneSpelling...); err == nil {
			v = one
		}
	}
	return fmt.Appendf(nil, "\"%016x\"", xxhash.Sum64(v))
}
