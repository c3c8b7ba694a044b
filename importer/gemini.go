package importer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// Gemini CLI writes a session as one object with messages, or in newer versions as a log. A record of the log may
// replace an earlier message with the same id, change the description ($set), or rewind to before a message
// ($rewindTo). So the log is read as a whole, like the object.

// parseGemini reads a session that is one object.
func parseGemini(body json.RawMessage) (*conversation, error) {
	c := &conversation{}
	var messages jsontext.Value
	err := message.Members(body, func(name string, v jsontext.Value) error {
		if name == "messages" && v.Kind() == '[' && messages == nil {
			messages = v.Clone()
			return nil
		}
		c.keep(name, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.geminiHeader(jsontext.Value(body))
	return c, elements(messages, func(v jsontext.Value) error {
		body, err := message.Compact(v)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("message %d: %s", len(c.nodes)+1, reasonOf(err)))
			return nil
		}
		own, r := c.geminiMessage(body)
		c.append(own, r)
		return nil
	})
}

// gemini reads a session that is a log.
func (j *job) gemini() error {
	c := &conversation{}
	at := map[key]int{} // the nodes of messages, by id
	size := int64(0)
	last := ""
	err := j.each(j.records(j.report, j.o.Progress), func(body json.RawMessage, _ int64) error {
		if size += int64(len(body)); size > j.o.MaxRecord {
			return fmt.Errorf("%s: %w: the session exceeds the limit of %d bytes", j.path, ErrTooLarge, j.o.MaxRecord)
		}
		own, r := c.geminiMessage(body)
		i, again := at[keyOf(own)]
		rewound := textAt(jsontext.Value(body), maxName, "$rewindTo")
		if own != "" && again {
			if c.nodes[i].Record = r; c.titled > len(c.nodes) {
				c.titled = i + 1
			}
			return nil
		}
		if to, ok := at[keyOf(rewound)]; ok && rewound != "" {
			last = c.nodes[to].parent
		}
		n := treeNode{name: fmt.Sprint(len(c.nodes)), parent: last, own: own, Record: r}
		if own != "" {
			at[keyOf(own)] = len(c.nodes)
		}
		last, c.current = n.name, n.name
		c.nodes = append(c.nodes, n)
		return nil
	})
	if err != nil {
		return err
	}
	if c.info.Session == "" {
		c.info.Session = sessionOfName(j.path)
	}
	return j.document(c, 1)
}

func (c *conversation) geminiHeader(v jsontext.Value) {
	_ = message.Members(v, func(name string, v jsontext.Value) error {
		switch name {
		case "sessionId":
			if c.info.Session == "" {
				c.info.Session = text(v, maxName)
			}
		case "lastUpdated":
			if at := message.Time(v); at.After(c.info.StateAt) {
				c.info.StateAt = at
			}
		case "summary":
			if t := text(v, maxText); t != "" {
				c.info.Title, c.titled = title(t), 0
			}
		case "projectRoot", "directory":
			c.info.label(LabelProject, text(v, maxPath))
		}
		return nil
	})
}

// geminiMessage describes a record and learns from it.
func (c *conversation) geminiMessage(body json.RawMessage) (own string, r Record) {
	r.Body = body
	_, r.Type, r.CreatedAt = message.Describe(body)
	v := jsontext.Value(body)
	set := member(v, "$set")
	switch own = textAt(v, maxName, "id"); {
	case set != nil:
		own, r.Role, r.Type = "", message.RoleBookkeeping, "$set"
		c.geminiHeader(set)
	case textAt(v, maxName, "$rewindTo") != "":
		own, r.Role, r.Type = "", message.RoleBookkeeping, "$rewindTo"
	case r.Type == "user":
		r.Role = "user"
		if said := contentText(member(v, "content")); !strings.HasPrefix(said, "/") {
			c.titleByPrompt(said)
		}
	case r.Type == "gemini":
		r.Role = "assistant"
		if c.info.Model == "" {
			c.info.Model = textAt(v, maxName, "model")
		}
	case r.Type == "":
		own, r.Role = "", message.RoleBookkeeping
		c.geminiHeader(v)
	default: // info, warning, error
		r.Role = message.RoleBookkeeping
	}
	return own, r
}
