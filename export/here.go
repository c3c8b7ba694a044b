package export

import (
	"encoding/json"

	"github.com/ctxdir/ctxdir/internal/object"
)

// here gives a record of a session the folder that it has on this machine: Claude Code and Codex look for the sessions of a
// folder. Nothing else changes.
func (x *writer) here(record json.RawMessage) json.RawMessage {
	if x.o.Here == nil || x.o.Format != ClaudeCode && x.o.Format != Codex {
		return record
	}
	var o object.Object
	if o.Parse(record) != nil {
		return record
	}
	if x.o.Format == ClaudeCode {
		return x.moved(record, &o)
	}
	var payload object.Object
	if v := o.Get("payload"); v == nil || payload.Parse(v) != nil {
		return record
	}
	was := o.Get("payload")
	now := x.moved(was, &payload)
	if len(now) == len(was) && &now[0] == &was[0] {
		return record
	}
	o.Set("payload", now)
	return o.Raw()
}

// moved returns a record whose member cwd is on this machine: the same bytes if it is already.
func (x *writer) moved(record json.RawMessage, o *object.Object) json.RawMessage {
	was := o.Text("cwd")
	now := x.o.Here(was)
	if was == "" || now == was {
		return record
	}
	o.SetText("cwd", now)
	return o.Raw()
}
