package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir/message"
	"github.com/go-json-experiment/json/jsontext"
)

// chatGPT imports a ChatGPT export as one context for each conversation. A record is a node of its tree: the links and,
// unless it is null, the message.
func (j *job) chatGPT() error {
	return j.each(j.records(j.report, j.o.Progress), func(body json.RawMessage, line int64) error {
		c, err := parseConversation(body)
		if err != nil {
			j.report(line, err.Error())
			return nil
		}
		for _, reason := range c.problems {
			j.report(line, reason)
		}
		if len(c.nodes) == 0 {
			j.report(line, "a conversation without messages")
			return nil
		}
		s, err := j.begin(c.info)
		if err != nil {
			if !j.emit(Result{Path: j.path, Format: j.format, Context: c.info.ID, Title: c.info.Title}, err) {
				return errStop
			}
			return j.ctx.Err()
		}
		if !j.emit(s.end(s.tree(c))) {
			return errStop
		}
		return j.ctx.Err()
	})
}

// errStop ends the read of a file when the caller stops.
var errStop = errors.New("stopped")

// conversation is a conversation of an export.
type conversation struct {
	info     Info
	extra    json.RawMessage
	current  string
	nodes    []treeNode
	problems []string
}

// treeNode is a node as in the file. Its name is its key in the mapping.
type treeNode struct {
	name, parent string
	children     []string
	body         json.RawMessage
}

func parseConversation(body json.RawMessage) (*conversation, error) {
	c := &conversation{info: Info{Format: ChatGPT}}
	var mapping jsontext.Value
	var id, conversationID string
	extra := []byte{'{'}
	err := message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "mapping":
			// The first mapping counts; report any other as a problem.
			if mapping == nil {
				mapping = v.Clone()
				return nil
			}
			c.problems = append(c.problems, `a second "mapping"`)
			return nil
		case "id":
			id = text(v, maxName)
		case "conversation_id":
			conversationID = text(v, maxName)
		case "title":
			c.info.Title = title(text(v, 64<<10))
		case "create_time":
			c.info.CreatedAt = message.Time(v)
		case "current_node":
			c.current = text(v, maxName)
		case "default_model_slug":
			c.info.Model = text(v, maxName)
		}
		extra = appendMember(extra, name, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if mapping.Kind() != '{' {
		return nil, errors.New(`not a conversation: it has no "mapping"`)
	}
	extra = append(extra, '}')
	c.extra = extra
	if err := c.parseNodes(mapping); err != nil {
		return nil, err
	}
	switch {
	case conversationID != "":
		c.info.Session = conversationID
	case id != "":
		c.info.Session = id
	case len(c.nodes) > 0:
		// A node's links change as the conversation continues; its name does not.
		c.info.ID = openingID(ChatGPT, []json.RawMessage{json.RawMessage(c.nodes[0].name)})
	}
	if c.info.Session != "" {
		c.info.ID = contextID(ChatGPT, c.info.Session)
	}
	if len(c.extra) <= MaxExtra {
		c.info.Extra = c.extra
	}
	return c, nil
}

func (c *conversation) parseNodes(mapping jsontext.Value) error {
	return message.Members(mapping, func(name string, v jsontext.Value) error {
		body, err := message.Compact(v)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("node %.64q: %s", name, reasonOf(err)))
			return nil
		}
		n := treeNode{name: name, body: body}
		err = message.Members(body, func(member string, v jsontext.Value) error {
			switch member {
			case "parent":
				n.parent = text(v, maxName)
			case "children":
				n.children = nil
				return elements(v, func(child jsontext.Value) error {
					n.children = append(n.children, text(child, maxName))
					return nil
				})
			}
			return nil
		})
		c.nodes = append(c.nodes, n)
		return err
	})
}

// tree stores the nodes of a conversation.
func (s *session) tree(c *conversation) error {
	if err := s.extra(c.extra); err != nil {
		return err
	}
	s.walk.same = sameNode
	main, err := c.plan(func(t *target, n *treeNode) error {
		r := Record{Type: "node", Body: n.body}
		r.ID, r.OriginID = s.ids.next(n.name, n.body)
		_ = message.Members(n.body, func(name string, v jsontext.Value) error {
			if name == "message" && v.Kind() == '{' {
				r.Role, _, r.CreatedAt = message.Describe(v)
			}
			return nil
		})
		return s.walk.put(t, r)
	})
	if err != nil {
		return err
	}
	// The branch that people see in their tool, whichever was stored last.
	s.walk.active = main
	return nil
}

// sameNode compares two states of a node: its list of children grows as the conversation continues.
func sameNode(stored, found json.RawMessage) bool {
	return bytes.Equal(stored, found) || bytes.Equal(withoutChildren(stored), withoutChildren(found))
}

func withoutChildren(node json.RawMessage) []byte {
	b := []byte{'{'}
	_ = message.Members(node, func(name string, v jsontext.Value) error {
		if name != "children" {
			b = appendMember(b, name, v)
		}
		return nil
	})
	return append(b, '}')
}

// appendMember appends a member to an unfinished object.
func appendMember(object []byte, name string, v jsontext.Value) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		// The decoder replaced half a surrogate pair in the name, so Marshal can write it.
		quoted, _ = json.Marshal(name)
	}
	return append(append(append(object, quoted...), ':'), v...)
}
