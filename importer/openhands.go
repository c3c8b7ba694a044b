package importer

import (
	"encoding/json"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// openHands reads the events of OpenHands: a list in a file, or a folder with a file for each event. Actions and
// observations alternate; in version 1 the kind of an event is its class.
type openHands struct{ branches }

func newOpenHands() logFormat { return &openHands{newBranches()} }

func (o *openHands) read(body json.RawMessage, info *Info) (own string, r Record) {
	v := jsontext.Value(body)
	_, _, r.CreatedAt = message.Describe(body)
	if at := textAt(v, maxName, "timestamp"); r.CreatedAt.IsZero() {
		// Their times have no zone.
		if t, err := time.Parse("2006-01-02T15:04:05.999999999", at); err == nil && message.ValidTime(t) {
			r.CreatedAt = t.UTC()
		}
	}
	source, kind := textAt(v, maxName, "source"), textAt(v, maxName, "kind")
	action, observation := textAt(v, maxName, "action"), textAt(v, maxName, "observation")
	said := ""
	switch {
	case kind != "":
		r.Type, r.Role = kind, openHandsRole(kind, source)
		said = contentText(member(v, "llm_message", "content"))
		if info.Model == "" {
			info.Model = textAt(v, maxName, "llm", "model")
		}
	case action != "":
		r.Type, r.Role = action, "assistant"
		switch {
		case action == "change_agent_state" || action == "recall" || action == "null":
			r.Role = message.RoleBookkeeping
		case action == "system":
			r.Role = "system"
		case source == "user":
			r.Role = "user"
		}
		said = textAt(v, len(v), "args", "content")
	default:
		r.Type, r.Role = observation, "tool"
		if observation == "agent_state_changed" || observation == "null" || observation == "" {
			r.Role = message.RoleBookkeeping
		}
	}
	if r.Role == "user" {
		info.Title = promptTitle(info.Title, said)
	}
	// In version 0 ids are numbers from 0 on.
	return textAt(v, maxName, "id"), r
}

func openHandsRole(kind, source string) string {
	switch kind {
	case "SystemPromptEvent":
		return "system"
	case "MessageEvent":
		if source == "user" {
			return "user"
		}
		return "assistant"
	case "ActionEvent":
		return "assistant"
	case "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
		return "tool"
	case "Condensation", "CondensationSummaryEvent":
		return ""
	}
	return message.RoleBookkeeping
}

func (o *openHands) place() *target { return o.current }
func (o *openHands) placed(node)    {}
