package importer

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// parseOpenAssistant reads an OpenAssistant tree: the root message, or an object with it under "prompt".
func parseOpenAssistant(body json.RawMessage) (*conversation, error) {
	c := &conversation{}
	root := body
	if prompt := member(jsontext.Value(body), "prompt"); prompt.Kind() == '{' {
		root = json.RawMessage(prompt)
		c.extra = without(body, "prompt")
		c.extra = c.extra[:len(c.extra)-1]
		c.info.Session = textAt(jsontext.Value(body), maxName, "message_tree_id")
	}
	var ranks []float64
	err := c.nest(root, "", "replies", 0, func(body json.RawMessage) (own string, r Record) {
		rank := math.Inf(1)
		_ = message.Members(body, func(name string, v jsontext.Value) error {
			switch name {
			case "message_id":
				own = text(v, maxName)
			case "role":
				if r.Role = text(v, maxName); r.Role == "prompter" {
					r.Role = "user"
				}
			case "text":
				if len(ranks) == 0 {
					c.titleBy(text(v, len(v)))
				}
			case "created_date":
				r.CreatedAt = message.Time(v)
			case "model_name":
				if c.info.Model == "" {
					c.info.Model = text(v, maxName)
				}
			case "rank":
				if f, err := strconv.ParseFloat(string(v), 64); err == nil {
					rank = f
				}
			}
			return nil
		})
		r.Type = "message"
		ranks = append(ranks, rank)
		return own, r
	})
	if err != nil {
		return nil, err
	}
	if c.info.Session == "" {
		c.info.Session = c.nodes[0].own
	}
	c.current = c.best(ranks)
	return c, nil
}

// best is the end of the path of the best replies: the lowest rank, else the first.
func (c *conversation) best(ranks []float64) string {
	replies := map[string][]int{}
	for i := range c.nodes {
		replies[c.nodes[i].parent] = append(replies[c.nodes[i].parent], i)
	}
	at := c.nodes[0].name
	for len(replies[at]) > 0 {
		first := replies[at][0]
		for _, i := range replies[at] {
			if ranks[i] < ranks[first] {
				first = i
			}
		}
		at = c.nodes[first].name
	}
	return at
}

// parseLibreChat reads a LibreChat export, whose messages are a list with links to parents, or hold their replies.
func parseLibreChat(body json.RawMessage) (*conversation, error) {
	c := &conversation{}
	var messages jsontext.Value
	err := message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "messages", "messagesTree":
			if messages == nil && v.Kind() == '[' {
				messages = v.Clone()
				return nil
			}
		case "conversationId":
			c.info.Session = text(v, maxName)
		case "title":
			c.info.Title = title(text(v, maxText))
		case "exportAt":
			c.info.StateAt = message.Time(v)
		case "options":
			c.info.Model = textAt(v, maxName, "model")
		}
		c.keep(name, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if messages == nil {
		return nil, errors.New(`not a LibreChat export: it has no "messages"`)
	}
	err = elements(messages, func(v jsontext.Value) error {
		body, err := message.Compact(v)
		if err != nil {
			c.problems = append(c.problems, "a message: "+reasonOf(err))
			return nil
		}
		return c.nest(body, "", "children", 0, libreChatMessage)
	})
	if err != nil {
		return nil, err
	}
	c.linkParents()
	return c, nil
}

func libreChatMessage(body json.RawMessage) (own string, r Record) {
	_, r.Type, r.CreatedAt = message.Describe(body)
	r.Role, r.Type = "assistant", "message"
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "messageId":
			own = text(v, maxName)
		case "isCreatedByUser":
			if v.Kind() == 't' {
				r.Role = "user"
			}
		}
		return nil
	})
	return own, r
}

// linkParents links the messages of a flat list by their parentMessageId.
func (c *conversation) linkParents() {
	byID := map[string]string{}
	for i := range c.nodes {
		byID[c.nodes[i].own] = c.nodes[i].name
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.parent == "" {
			n.parent = byID[textAt(jsontext.Value(n.Body), maxName, "parentMessageId")]
		}
	}
}
