package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir/message"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// claude imports a Claude Code transcript as one context, regardless of the sessions that its lines name.
func (j *job) claude() error {
	info, err := j.claudeInfo()
	if err != nil {
		return err
	}
	s, err := j.begin(info)
	if err != nil {
		return err
	}
	t := newTranscript()
	err = j.each(j.records(j.report, j.o.Progress), func(body json.RawMessage, _ int64) error {
		e := parseEntry(body)
		to := t.place(&e)
		if err := s.put(to, e.uuid, body); err != nil {
			return err
		}
		t.placed(&e, to)
		return nil
	})
	j.emit(s.end(err))
	return nil
}

// openingRecords limits the records that are read for a description. The search for a session covers the whole file.
const openingRecords = 200

// claudeInfo reads the beginning of a transcript. Many files begin with lines without a session (snapshots; summaries
// of other sessions, equal in many files), so the first line that has one counts.
func (j *job) claudeInfo() (Info, error) {
	info := Info{Format: ClaudeCode}
	var first json.RawMessage
	n := 0
	err := j.each(j.records(nil, nil), func(body json.RawMessage, _ int64) error {
		if first == nil {
			first = body
		}
		e := parseEntry(body)
		if info.Session == "" {
			info.Session = e.session
		}
		if n++; n <= openingRecords {
			_, _, at := message.Describe(body)
			info.CreatedAt = earliest(info.CreatedAt, at)
			if info.Title == "" && e.prompt && !e.sidechain && !strings.HasPrefix(e.text, "<") && !strings.HasPrefix(e.text, "Caveat:") {
				info.Title = title(e.text)
			}
			if info.Model == "" && !strings.HasPrefix(e.model, "<") {
				info.Model = e.model
			}
		}
		if info.Session != "" && (n >= openingRecords || info.Title != "" && info.Model != "" && !info.CreatedAt.IsZero()) {
			return errKnown
		}
		return nil
	})
	if err != nil && !errors.Is(err, errKnown) {
		return info, err
	}
	stem := strings.TrimSuffix(filepath.Base(j.path), filepath.Ext(j.path))
	switch {
	case first == nil:
		return info, j.empty()
	case info.Session != "":
	case uuid.Validate(stem) == nil && len(stem) == 36:
		// A file has the name of its session, and may end after its first lines.
		info.Session = strings.ToLower(stem)
	default:
		info.ID = openingID(ClaudeCode, []json.RawMessage{first})
		return info, nil
	}
	info.ID = contextID(ClaudeCode, info.Session)
	return info, nil
}

// empty reports the problems of a file without records.
func (j *job) empty() error {
	_ = j.each(j.records(j.report, nil), func(json.RawMessage, int64) error { return io.EOF })
	return fmt.Errorf("%s: %w", j.path, ErrEmpty)
}

// entry is the part of a transcript's line that decides its branch.
type entry struct {
	uuid, parent, session, agent, messageID, model string

	typ       string
	sidechain bool
	prompt    bool // a human's prompt, or a sidechain's task
	text      string

	spawnedBy []string  // ids of the tool calls that it names as its origin
	calls     []toolUse // tool calls in it
}

type toolUse struct {
	id     string
	prompt string // the task of a subagent; "" for other tools
}

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
		case "sessionId":
			e.session = text(v, maxName)
		case "agentId":
			e.agent = text(v, maxName)
		case "isSidechain":
			e.sidechain = v.Kind() == 't'
		case "isMeta", "isCompactSummary":
			meta = meta || v.Kind() == 't'
		case "toolUseResult":
			result = result || v.Kind() != 'n'
		case "parentToolUseID", "toolUseID", "sourceToolUseID":
			if id := text(v, maxName); id != "" {
				e.spawnedBy = append(e.spawnedBy, id)
				// Nobody typed a message that comes from a tool.
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
	var typ, said string
	var call toolUse
	_ = message.Members(block, func(name string, v jsontext.Value) error {
		switch name {
		case "type":
			typ = text(v, maxName)
		case "id":
			call.id = text(v, maxName)
		case "text":
			said = text(v, len(v))
		case "input":
			if v.Kind() == '{' {
				_ = message.Members(v, func(name string, v jsontext.Value) error {
					if name == "prompt" {
						call.prompt = text(v, len(v))
					}
					return nil
				})
			}
		}
		return nil
	})
	switch typ {
	case "text":
		if e.text == "" {
			e.text = said
		}
	case "tool_use":
		e.calls = append(e.calls, call)
	}
	return typ == "tool_result"
}
