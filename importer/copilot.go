package importer

import (
	"encoding/json"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// copilot reads the events of a GitHub Copilot CLI session. Each event names the one before it.
type copilot struct{ linked }

func newCopilot() logFormat { return &copilot{newLinked()} }

func (c *copilot) read(body json.RawMessage, info *Info) (own string, r Record) {
	c.id, c.parent = "", ""
	_, r.Type, r.CreatedAt = message.Describe(body)
	var data jsontext.Value
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "id":
			c.id = text(v, maxName)
		case "parentId":
			c.parent = text(v, maxName)
		case "data":
			data = v.Clone()
		}
		return nil
	})
	r.Role = copilotRole(r.Type)
	r.says.add(textAt(data, len(data), "content"))
	r.says.addCall(textAt(data, maxName, "toolCallId"))
	_ = elements(member(data, "toolRequests"), func(v jsontext.Value) error {
		r.says.addCall(textAt(v, maxName, "toolCallId"))
		return nil
	})
	switch r.Type {
	case "session.start":
		if info.Session == "" {
			info.Session = textAt(data, maxName, "sessionId")
		}
		info.label(LabelProject, textAt(data, maxPath, "context", "cwd"))
		info.label(LabelGitBranch, textAt(data, maxPath, "context", "branch"))
		if info.Model == "" {
			info.Model = textAt(data, maxName, "selectedModel")
		}
	case "session.model_change":
		if info.Model == "" {
			info.Model = textAt(data, maxName, "newModel")
		}
	case "session.title_changed":
		if t := textAt(data, maxText, "title"); t != "" {
			info.Title = title(t)
		}
	case "user.message":
		info.Title = promptTitle(info.Title, textAt(data, len(data), "content"))
	}
	c.opened.see(c.id, c.parent)
	return c.id, r
}

// copilotRole returns the role of an event. A call appears in the message of the assistant; its start repeats it.
func copilotRole(typ string) string {
	kind, _, _ := strings.Cut(typ, ".")
	switch {
	case typ == "user.message":
		return "user"
	case typ == "assistant.message", typ == "assistant.reasoning":
		return "assistant"
	case typ == "tool.execution_complete":
		return "tool"
	case typ == "tool.execution_start":
		return message.RoleMirror
	case kind == "system":
		return "system"
	}
	return message.RoleBookkeeping
}
