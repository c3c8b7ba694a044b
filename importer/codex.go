package importer

import (
	"encoding/json"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// codex reads rollouts of Codex CLI. A line holds a payload in an envelope with type and time; lines of the oldest
// files are the payload alone. Events repeat what response items say, so that a terminal can show them. A rollback
// takes back the last prompts: what follows is a fork before them.
type codex struct {
	branches
	turns   []node // where the turns of the person begin
	started int64  // where the task that has no prompt yet begins, -1 if there is none
	item    codexItem
	named   bool // the title is the tool's own
	met     bool // the first description was read; a fork also has that of its parent
}

// codexItem is the part of a record that decides its place.
type codexItem struct {
	envelope, typ string
	prompt        bool
	rolledBack    int64
}

func newCodex() logFormat { return &codex{branches: newBranches(), started: -1} }

// codexMirrors are the events that repeat a response item. Other events are bookkeeping.
var codexMirrors = map[string]bool{
	"user_message": true, "agent_message": true, "agent_reasoning": true, "agent_reasoning_raw_content": true,
	"agent_reasoning_section_break": true, "web_search_begin": true, "web_search_end": true, "exec_command_begin": true,
	"exec_command_end": true, "patch_apply_begin": true, "patch_apply_end": true, "mcp_tool_call_begin": true,
	"mcp_tool_call_end": true, "view_image_tool_call": true, "image_generation_end": true, "item_completed": true,
}

func (c *codex) read(body json.RawMessage, info *Info) (own string, r Record) {
	c.item = codexItem{}
	payload := jsontext.Value(body)
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "timestamp":
			r.CreatedAt = message.Time(v)
		case "type":
			c.item.envelope = text(v, maxName)
		case "payload":
			if v.Kind() == '{' {
				payload = v.Clone()
			}
		case "record_type":
			c.item.envelope = "state"
		}
		return nil
	})
	p := parseCodexPayload(payload)
	c.item.typ = p.typ
	if c.item.envelope == "" { // the first line of an old file
		c.item.envelope = "session_meta"
	}
	switch c.item.envelope {
	case "response_item", p.typ: // an old line has the type of its payload
		r.Role, r.Type, r.says = p.voice(), p.typ, p.says
	case "event_msg":
		r.says = p.says
		r.Role, r.Type = message.RoleBookkeeping, p.typ
		if codexMirrors[p.typ] {
			r.Role = message.RoleMirror
		}
	case "compacted":
		r.Type, r.says = c.item.envelope, p.says
	default:
		r.Role, r.Type = message.RoleBookkeeping, c.item.envelope
	}
	c.describe(&p, info)
	return "", r
}

// describe learns about the conversation and the turns.
func (c *codex) describe(p *codexPayload, info *Info) {
	switch {
	case c.item.envelope == "session_meta":
		if !c.met {
			c.met = true
			if info.Session == "" {
				info.Session = strings.ToLower(p.id)
			}
			for _, parent := range []string{p.forkedFrom, p.parentThread} {
				if parent != "" && info.Parent == uuid.Nil {
					info.Parent = ContextID(Codex, strings.ToLower(parent))
				}
			}
		}
		info.label(LabelProject, p.cwd)
		info.label(LabelGitBranch, p.gitBranch)
		info.label(LabelRepository, p.repository)
	case c.item.envelope == "turn_context":
		info.label(LabelProject, p.cwd)
		if info.Model == "" {
			info.Model = p.model
		}
	case c.item.envelope != "event_msg":
		if p.role == "user" && !c.named {
			info.Title = promptTitle(info.Title, p.text)
		}
	case p.typ == "thread_name_updated" && p.name != "":
		info.Title, c.named = title(p.name), true
	case p.typ == "thread_rolled_back":
		c.item.rolledBack = p.turns
	case p.typ == "user_message":
		c.item.prompt = true
		if !c.named {
			info.Title = promptTitle(info.Title, p.text)
		}
	}
}

func (c *codex) place() *target {
	if n := int64(len(c.turns)) - c.item.rolledBack; c.item.rolledBack > 0 && len(c.turns) > 0 {
		n = max(n, 0)
		c.forkAt(c.turns[n].to, c.turns[n].at)
		c.turns, c.started = c.turns[:n], -1
	}
	return c.current
}

func (c *codex) placed(n node) {
	switch {
	case c.item.envelope == "event_msg" && (c.item.typ == "task_started" || c.item.typ == "turn_started"):
		c.started = n.at
	case c.item.prompt:
		if c.started >= 0 {
			n.at = c.started
		}
		c.turns, c.started = append(c.turns, n), -1
	}
}

// codexPayload is the part of a payload that the importer uses.
type codexPayload struct {
	typ, id, role, text, name, model                     string
	cwd, gitBranch, repository, forkedFrom, parentThread string
	turns                                                int64
	says                                                 says
}

func parseCodexPayload(payload jsontext.Value) (p codexPayload) {
	_ = message.Members(payload, func(name string, v jsontext.Value) error {
		switch name {
		case "type":
			p.typ = text(v, maxName)
		case "id":
			p.id = text(v, maxName)
			p.says.addCall(p.id) // of a search
		case "role":
			p.role = text(v, maxName)
		case "cwd":
			p.cwd = text(v, maxPath)
		case "model":
			p.model = text(v, maxName)
		case "thread_name":
			p.name = text(v, maxText)
		case "message", "content":
			if p.text == "" {
				p.text = contentText(v)
			}
			contentTexts(v, func(t string) { p.says.add(t) })
		case "text", "summary", "last_agent_message", "item":
			contentTexts(v, func(t string) { p.says.add(t) })
			contentTexts(member(v, "content"), func(t string) { p.says.add(t) })
			p.says.addCall(textAt(v, maxName, "id"))
		case "call_id":
			p.says.addCall(text(v, maxName))
		case "replacement_history":
			_ = elements(v, func(item jsontext.Value) error {
				contentTexts(member(item, "content"), func(t string) { p.says.parts = append(p.says.parts, keyOf(t)) })
				return nil
			})
		case "forked_from_id":
			p.forkedFrom = text(v, maxName)
		case "num_turns":
			p.turns = number(v)
		case "git":
			p.gitBranch, p.repository = textAt(v, maxPath, "branch"), RepositoryName(textAt(v, maxPath, "repository_url"))
		case "source":
			p.parentThread = textAt(v, maxName, "subagent", "thread_spawn", "parent_thread_id")
		}
		return nil
	})
	return p
}

// voice is the role of a response item.
func (p *codexPayload) voice() string {
	switch {
	case p.role != "":
		return p.role
	case strings.HasSuffix(p.typ, "_output"):
		return "tool"
	case p.typ == "reasoning", strings.HasSuffix(p.typ, "_call"):
		return "assistant"
	}
	return ""
}
