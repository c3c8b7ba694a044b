package importer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// parseChatGPT reads a conversation of a ChatGPT export. A record is a node of its tree: the links and, unless it is
// null, the message.
func parseChatGPT(body json.RawMessage) (*conversation, error) {
	c := &conversation{}
	var mapping jsontext.Value
	var id, conversationID string
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
		case "update_time":
			c.info.StateAt = message.Time(v)
		case "current_node":
			c.current = text(v, maxName)
		case "default_model_slug":
			c.info.Model = text(v, maxName)
		}
		c.keep(name, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if mapping.Kind() != '{' {
		return nil, errors.New(`not a conversation: it has no "mapping"`)
	}
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
		c.opening = []json.RawMessage{json.RawMessage(c.nodes[0].name)}
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
		n := treeNode{name: name, own: name, Record: Record{Type: "node", Body: body}}
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
			case "message":
				if v.Kind() == '{' {
					n.Role, _, n.CreatedAt = message.Describe(v)
				}
			}
			return nil
		})
		c.nodes = append(c.nodes, n)
		return err
	})
}
