package importer

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// claude reads Claude Code transcripts. A file is one context, regardless of the sessions that its lines name.
type claude struct {
	*transcript
	entry  entry
	opened opening

	// Titles, in descending order: one that a person set, one that the tool made, the first prompt.
	custom, made string
	typed        string         // the last prompt as a title, if it is a command
	local        string         // the title, if it is a command that the tool itself carried out
	summaries    map[key]string // of leaves that the file does not have yet
}

func newClaude() logFormat { return &claude{transcript: newTranscript(), summaries: map[key]string{}} }

// claudeBookkeeping are the types of lines that people do not read.
var claudeBookkeeping = map[string]bool{
	"progress": true, "file-history-snapshot": true, "queue-operation": true, "summary": true, "pr-link": true, "custom-title": true,
	"ai-title": true, "agent-name": true, "agent-color": true, "agent-setting": true, "last-prompt": true, "permission-mode": true,
	"mode": true, "tag": true, "attribution-snapshot": true, "content-replacement": true, "worktree-state": true,
	"system/stop_hook_summary": true, "system/turn_duration": true,
}

func (c *claude) read(body json.RawMessage, info *Info) (own string, r Record) {
	c.entry = parseEntry(body)
	e := &c.entry
	r.Role, r.Type, r.CreatedAt = message.Describe(body)
	if claudeBookkeeping[e.typ] || claudeBookkeeping[e.typ+"/"+e.subtype] {
		r.Role = message.RoleBookkeeping
	}
	if info.Session == "" {
		info.Session = e.session
	}
	info.label(LabelProject, e.cwd)
	info.label(LabelGitBranch, e.gitBranch)
	if info.Model == "" && !strings.HasPrefix(e.model, "<") {
		info.Model = e.model
	}
	c.name(e, info)
	follows := cmp.Or(e.parent, e.logicalParent)
	if e.sidechain {
		follows = ""
	}
	c.opened.see(e.uuid, follows)
	r.says = c.says(e)
	return e.uuid, r
}

// says returns what a line has in common with others.
func (c *claude) says(e *entry) says {
	is := e.says
	if _, again := c.nodes[keyOf(e.uuid)]; again && e.uuid != "" { // the history was written again
		is.about = append(is.about, e.uuid)
	}
	if e.leaf != "" {
		is.about = append(is.about, e.leaf)
	}
	if e.sidechain && e.prompt && e.text != "" {
		is.task = keyOf(e.text)
	}
	if e.typ == "progress" && !e.ofAgent {
		for _, id := range e.spawnedBy {
			is.addCall(id)
		}
	}
	for _, id := range e.answers {
		is.addCall(id)
		for _, k := range e.beside {
			is.echo = append(is.echo, argText{callKey(id), k})
		}
	}
	return is
}

func (c *claude) first() opening { return c.opened }

func (c *claude) start(behind *target, base int64) { c.main.resume(behind, base) }

// name learns the title. A summary counts if it is about a line of this file: tools also store those of other sessions.
func (c *claude) name(e *entry, info *Info) {
	leaf := keyOf(e.uuid)
	switch {
	case e.typ == "custom-title" && e.title != "":
		c.custom = title(e.title)
	case e.typ == "ai-title" && e.title != "":
		c.made = title(e.title)
	case e.typ == "summary" && e.title != "":
		if _, ok := c.nodes[keyOf(e.leaf)]; ok {
			c.made = title(e.title)
		} else {
			c.summaries[keyOf(e.leaf)] = title(e.title)
		}
	case e.uuid != "" && c.summaries[leaf] != "":
		c.made = c.summaries[leaf]
	}
	switch {
	case c.custom != "":
		info.Title = c.custom
	case c.made != "":
		info.Title = c.made
	case e.prompt && !e.sidechain:
		c.nameByPrompt(e, info)
	}
}

// nameByPrompt takes the first prompt as the title. What a command prints follows it if the tool itself carried it out.
func (c *claude) nameByPrompt(e *entry, info *Info) {
	if _, ok := message.Printed(e.text); ok {
		if c.local == "" && info.Title != "" && info.Title == c.typed {
			c.local = c.typed
		}
		return
	}
	have := info.Title
	if have == c.local && !message.IsCommand(e.said) {
		have = ""
	}
	info.Title = promptTitle(have, e.said)
	c.typed = ""
	if _, ok := message.Typed(e.text); ok {
		c.typed = title(e.said)
	}
}

func (c *claude) place() *target { return c.transcript.place(&c.entry) }

func (c *claude) placed(n node) { c.transcript.placed(&c.entry, n.to) }

func parseEntry(body json.RawMessage) (e entry) {
	var meta, result, isMessage bool
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "type":
			e.typ = text(v, maxName)
		case "uuid":
			e.uuid = text(v, maxName)
		case "parentUuid":
			e.parent = text(v, maxName)
		case "logicalParentUuid":
			e.logicalParent = text(v, maxName)
		case "sessionId":
			e.session = text(v, maxName)
		case "agentId":
			e.agent = text(v, maxName)
		case "subtype":
			e.subtype = text(v, maxName)
		case "cwd":
			e.cwd = text(v, maxPath)
		case "gitBranch":
			e.gitBranch = text(v, maxPath)
		case "customTitle", "aiTitle", "summary":
			e.title = text(v, maxText)
		case "leafUuid":
			e.leaf = text(v, maxName)
		case "isSidechain":
			e.sidechain = v.Kind() == 't'
		case "isMeta", "isCompactSummary":
			meta = meta || v.Kind() == 't'
		case "toolUseResult":
			result = result || v.Kind() != 'n'
			e.parseResult(v)
		case "content", "lastPrompt":
			contentTexts(v, func(t string) { e.says.add(t) })
		case "attachment":
			contentTexts(member(v, "prompt"), func(t string) { e.says.add(t) })
		case "data":
			e.parseProgress(v)
		case "parentToolUseID", "toolUseID", "sourceToolUseID":
			if id := text(v, maxName); id != "" {
				e.spawnedBy = append(e.spawnedBy, id)
				// A message that comes from a tool was not typed by a person.
				meta = meta || name == "sourceToolUseID"
			}
		case "message":
			if isMessage = v.Kind() == '{'; isMessage {
				result = e.parseMessage(v) || result
			}
		}
		return nil
	})
	e.prompt = e.typ == "user" && isMessage && !meta && !result
	return e
}

// parseMessage reads the message of a line and reports whether it holds a tool's result.
func (e *entry) parseMessage(m jsontext.Value) (result bool) {
	_ = message.Members(m, func(name string, v jsontext.Value) error {
		switch name {
		case "id":
			e.messageID = text(v, maxName)
		case "model":
			e.model = text(v, maxName)
		case "content":
			e.text = text(v, len(v))
			e.said = message.Said(e.text)
			contentTexts(v, func(t string) { e.says.add(t) })
			_ = elements(v, func(block jsontext.Value) error {
				result = e.parseBlock(block) || result
				return nil
			})
		}
		return nil
	})
	return result
}

func (e *entry) parseBlock(block jsontext.Value) (result bool) {
	if block.Kind() != '{' {
		return false
	}
	var typ, said, answers string
	var call toolUse
	var input jsontext.Value
	_ = message.Members(block, func(name string, v jsontext.Value) error {
		switch name {
		case "type":
			typ = text(v, maxName)
		case "id":
			call.id = text(v, maxName)
		case "tool_use_id":
			answers = text(v, maxName)
		case "content":
			contentTexts(v, func(t string) { e.says.add(t) })
		case "text":
			said = text(v, len(v))
		case "input":
			if v.Kind() == '{' {
				input = v.Clone()
				call.prompt = textAt(v, len(v), "prompt")
			}
		}
		return nil
	})
	if answers != "" && typ == "tool_result" {
		e.answers = append(e.answers, answers)
	}
	switch typ {
	case "text":
		if e.text == "" {
			e.text = said
		}
		if e.said == "" {
			e.said = message.Said(said)
		}
	case "tool_use":
		e.calls = append(e.calls, call)
		e.says.addCall(call.id)
		if call.prompt != "" {
			e.says.spawns = append(e.says.spawns, keyOf(call.prompt))
			e.says.add(call.prompt)
		}
		allTexts(input, func(t string) { e.says.gives = append(e.says.gives, argText{callKey(call.id), keyOf(t)}) })
	}
	return typ == "tool_result"
}

// parseResult reads what a tool returned beside the message. The result of a subagent repeats its last message.
func (e *entry) parseResult(v jsontext.Value) {
	allTexts(v, func(t string) { e.beside = append(e.beside, keyOf(t)) })
	if member(v, "prompt") != nil {
		contentTexts(member(v, "content"), func(t string) { e.says.parts = append(e.says.parts, keyOf(t)) })
	}
}

// parseProgress reads the progress of a tool. That of a subagent repeats its messages, that of others their output.
func (e *entry) parseProgress(v jsontext.Value) {
	contentTexts(member(v, "prompt"), func(t string) { e.says.add(t) })
	contentTexts(member(v, "message", "message", "content"), func(t string) { e.says.add(t) })
	e.ofAgent = textAt(v, maxName, "type") == "agent_progress"
}
