package importer

import (
	"encoding/json"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// pi reads sessions of the pi coding agent: a header, then entries that since the second version form a tree.
type pi struct {
	linked
	named bool // the title is the tool's own
}

func newPi() logFormat { return &pi{linked: newLinked()} }

// piBookkeeping are the types of entries that people do not read.
var piBookkeeping = map[string]bool{
	"session": true, "thinking_level_change": true, "model_change": true, "label": true, "session_info": true, "custom": true,
}

func (p *pi) read(body json.RawMessage, info *Info) (own string, r Record) {
	p.id, p.parent = "", ""
	header := textAt(jsontext.Value(body), maxName, "type") == "session"
	r.Role, r.Type, r.CreatedAt = message.Describe(body)
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "id":
			if header && info.Session == "" {
				info.Session = text(v, maxName)
			} else if !header {
				p.id = text(v, maxName)
			}
		case "parentId":
			p.parent = text(v, maxName)
		case "cwd":
			info.label(LabelProject, text(v, maxPath))
		case "modelId":
			if info.Model == "" {
				info.Model = text(v, maxName)
			}
		case "parentSession", "branchedFrom":
			if session := sessionOfName(text(v, maxPath)); header && session != "" {
				info.Parent = ContextID(Pi, session)
			}
		case "name":
			if name := text(v, maxText); r.Type == "session_info" && name != "" {
				info.Title, p.named = title(name), true
			}
		case "message":
			p.readMessage(v, &r, info)
		}
		return nil
	})
	if piBookkeeping[r.Type] {
		r.Role = message.RoleBookkeeping
	}
	p.opened.see(p.id, p.parent)
	return p.id, r
}

func (p *pi) readMessage(v jsontext.Value, r *Record, info *Info) {
	switch r.Role {
	case "toolResult", "bashExecution":
		r.Role = "tool"
	case "user":
		if !p.named {
			info.Title = promptTitle(info.Title, contentText(member(v, "content")))
		}
	case "assistant":
		if info.Model == "" {
			info.Model = textAt(v, maxName, "model")
		}
	}
}
