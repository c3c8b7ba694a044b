package context

import (
	"encoding/json"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/internal/object"
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
func (m *Metadata) memberSums() Object {
	var sums []Member
	add := func(key string, value json.RawMessage) { sums = append(sums, Member{Key: key, Value: value}) }
	add("title", valueSum(object.Quoted(m.Title)))
	if m.ParentID != uuid.Nil {
		add("parent_id", valueSum(object.Quoted(m.ParentID.String())))
	}
	if m.Labels.Len() > 0 {
		add("labels", sumsOf(m.Labels).Raw())
	}
	if m.Config.Len() > 0 {
		add("config", sumsOf(m.Config).Raw())
	}
	add("active_branch", valueSum(object.Quoted(m.ActiveBranch)))
	branches := make([]Member, len(m.Branches))
	for i := range m.Branches {
		branches[i] = Member{Key: m.Branches[i].Line.String(), Value: m.Branches[i].memberSums().Raw()}
	}
	add("branches", object.New(branches).Raw())
	if m.State != nil {
		add("state", valueSum(m.State))
	}
	return object.New(append(sums, sumsOf(m.Extra).Members()...))
}

func (b *Branch) memberSums() Object {
	sums := []Member{{Key: "name", Value: valueSum(object.Quoted(b.Name))}}
	if b.SystemPrompt != nil {
		sums = append(sums, Member{Key: "system_prompt", Value: valueSum(b.SystemPrompt)})
	}
	return object.New(append(sums, sumsOf(b.Extra).Members()...))
}

// sumsOf returns the object with checksums in place of the values.
func sumsOf(o Object) Object {
	sums := o.Members()
	for i := range sums {
		sums[i].Value = valueSum(sums[i].Value)
	}
	return object.New(sums)
}

// objectIn returns the value of key if it is an object, else an empty one.
func objectIn(o Object, key string) (value Object) {
	if raw := o.Get(key); raw != nil && raw[0] == '{' {
		_ = value.Parse(raw) // a part of an object that was parsed
	}
	return value
}

// objectsIn returns the members that are objects.
func objectsIn(o Object) map[string]Object {
	all := make(map[string]Object, o.Len())
	for _, m := range o.Members() {
		if m.Value[0] == '{' {
			all[m.Key] = objectIn(o, m.Key)
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

// valueSum returns the checksum of a JSON value, as a JSON string. Programs that rewrite a file format what they do not
// change in their own way, which must not be an edit.
func valueSum(v json.RawMessage) json.RawMessage {
	if text, ok := object.PlainText(v); !ok || !object.IsPlain(string(text)) { // else it is that text
		if one, err := jsontext.AppendFormat(nil, v, oneSpelling...); err == nil {
			v = one
		}
	}
	return fmt.Appendf(nil, "\"%016x\"", xxhash.Sum64(v))
}
