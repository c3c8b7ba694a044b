package legacy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Node is a node, verbatim.
type Node struct {
	Key    jsontext.Value // a JSON string
	Value  jsontext.Value // without white space
	InFile bool           // the node has its own file
}

// Node reads a node. It fails with [ErrChanged] if the node differs from what was read before.
func (f *File) Node(i int32) (Node, error) {
	n := &f.nodes[i]
	if n.flags&inFile != 0 {
		b, _, err := f.readNodeFile(f.stem(i) + nodeEnd)
		if err != nil {
			return Node{}, err
		}
		v, err := compacted(b)
		return Node{Quote(f.stem(i)), v, true}, changed(err)
	}
	b := make([]byte, n.size)
	if _, err := f.file.ReadAt(b, f.mark+n.off); err != nil {
		return Node{}, changed(err)
	}
	b = bytes.TrimLeft(b, " \t\r\n,")
	d := jsontext.NewDecoder(bytes.NewBuffer(b), message.Verbatim...)
	name, err := d.ReadValue()
	if err != nil || name.Kind() != '"' {
		return Node{}, ErrChanged
	}
	text, _ := Text(name)
	if k, _ := keyOf(text); k != n.key {
		return Node{}, ErrChanged
	}
	if name, err = compacted(name); err != nil {
		return Node{}, err
	}
	_, rest, _ := bytes.Cut(b[d.InputOffset():], []byte{':'})
	v, err := compacted(rest)
	return Node{name, v, false}, err
}

func changed(err error) error {
	if err == nil {
		return nil
	}
	return ErrChanged
}

// ID is the id of an item's message: the node's key if that is a UUID, else an id derived from the context's id and the
// key. Each item of a plan has a different id.
func (f *File) ID(context uuid.UUID, it Item) (uuid.UUID, error) {
	at := &f.nodes[it.Node]
	id := uuid.UUID(at.key)
	if at.flags&canonical == 0 {
		n, err := f.Node(it.Node)
		if err != nil {
			return uuid.Nil, err
		}
		text, _ := Text(n.Key)
		id = f.free(uuid.NewSHA1(context, []byte("node\x00"+text)))
	}
	if at.flags&shadowed != 0 {
		id = f.free(message.DerivedID(id, "shadowed "+strconv.Itoa(int(it.Node))))
	}
	if it.Again > 0 {
		id = f.free(message.DerivedID(id, "again "+strconv.Itoa(int(it.Again))))
	}
	return id, nil
}

// free derives another id if a node has the derived one as its key.
func (f *File) free(id uuid.UUID) uuid.UUID {
	for {
		if _, taken := f.lookup(key(id)); !taken {
			return id
		}
		id = message.DerivedID(id, "taken")
	}
}

// Origin is the rest of a message's node, without the message. It goes into "source".
type Origin struct {
	Key      jsontext.Value // nil if it is the id of the message
	Members  Members        // of the node; the message has no value, nor has "id" if it is the key
	Node     jsontext.Value // the whole node, if it is not an object
	Shadowed bool           // a later node of the pool has the same key
	Inline   bool           // of a split context: the node was in context.json
}

// Source returns the origin as an object for "source".
func (o *Origin) Source() json.RawMessage {
	var ms Members
	add := func(name string, value jsontext.Value) { ms = append(ms, Member{Quote(name), value}) }
	if o.Key != nil {
		add("key", o.Key)
	}
	if o.Members != nil {
		pairs, _ := o.Members.MarshalJSON() // cannot fail
		add("members", pairs)
	}
	if o.Node != nil {
		add("node", o.Node)
	}
	if o.Shadowed {
		add("shadowed", jsontext.Value("true"))
	}
	if o.Inline {
		add("inline", jsontext.Value("true"))
	}
	return json.RawMessage(Members{{Quote("legacy"), ms.Object(nil)}}.Object(nil))
}

// ParseSource returns the origin in a message's "source", nil if there is none.
func ParseSource(raw json.RawMessage) *Origin {
	if len(raw) == 0 || !bytes.Contains(raw, []byte(`"legacy"`)) {
		return nil
	}
	ms, err := MembersOf(jsontext.Value(raw))
	if err != nil {
		return nil
	}
	legacy := ms.Get("legacy")
	if legacy.Kind() != '{' {
		return nil
	}
	if ms, err = MembersOf(legacy); err != nil {
		return nil
	}
	o := &Origin{Key: ms.Get("key"), Node: ms.Get("node")}
	o.Shadowed, o.Inline = string(ms.Get("shadowed")) == "true", string(ms.Get("inline")) == "true"
	if v := ms.Get("members"); v != nil && o.Members.UnmarshalJSON(v) != nil {
		return nil
	}
	if o.Key != nil && o.Key.Kind() != '"' {
		return nil
	}
	return o
}

// Take reads a node and separates the message from the rest. If the message is not an object, it stays with the rest,
// and an empty object replaces it. id is that of [File.ID].
func (f *File) Take(i int32, id uuid.UUID) (*Origin, json.RawMessage, error) {
	n, err := f.Node(i)
	if err != nil {
		return nil, nil, err
	}
	flags := f.nodes[i].flags
	o := &Origin{Shadowed: flags&shadowed != 0, Inline: f.Format == Split && flags&inFile == 0}
	if !bytes.Equal(n.Key, Quote(id.String())) {
		o.Key = n.Key
	}
	body := json.RawMessage("{}")
	if n.Value.Kind() != '{' {
		o.Node, err = shallow(n.Value)
		return o, body, err
	}
	if o.Members, err = MembersOf(n.Value); err != nil {
		return nil, nil, err
	}
	if i := o.Members.Last(nameMessage); i >= 0 && o.Members[i].Value.Kind() == '{' {
		body = json.RawMessage(o.Members[i].Value)
		o.Members[i].Value = nil
	}
	if i := o.Members.Last(nameID); i >= 0 && bytes.Equal(o.Members[i].Value, n.Key) {
		o.Members[i].Value = nil
	}
	for _, m := range o.Members {
		if m.Value != nil {
			if _, err := shallow(m.Value); err != nil {
				return nil, nil, err
			}
		}
	}
	return o, body, nil
}

// Build rebuilds the node from its key and its message.
func (o *Origin) Build(key jsontext.Value, body json.RawMessage) jsontext.Value {
	if o.Node != nil {
		return o.Node
	}
	return o.Members.Object(func(name string) jsontext.Value {
		switch name {
		case nameMessage:
			return jsontext.Value(body)
		case nameID:
			return key
		}
		return nil
	})
}

// Describe returns the role, the type and the creation time of a message of the old program.
func Describe(body json.RawMessage) (role, typ string, created time.Time) {
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "role":
			role = message.Short(v)
		case "message_type":
			typ = message.Short(v)
		case "metadata":
			if v.Kind() == '{' {
				return message.Members(v, func(name string, v jsontext.Value) error {
					if name == "created_at" {
						created = message.Time(v)
					}
					return nil
				})
			}
		}
		return nil
	})
	return role, typ, created
}
