package importer

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// A document is a file that a tool writes as a whole: an export, a trajectory. It holds one or more conversations, each
// a tree of messages. A later state of a conversation replaces the earlier one: new values, new messages, new branches.

// documents imports the conversations of a file. parse returns that of one value, nil for a part without one.
func (j *job) documents(parse func(body json.RawMessage) (*conversation, error)) error {
	return j.each(j.records(j.report, j.o.Progress), func(body json.RawMessage, line int64) error {
		c, err := parse(body)
		if err != nil {
			j.report(line, err.Error())
			return nil
		}
		return j.document(c, line)
	})
}

// document stores one conversation. Its error ends the import of the file.
func (j *job) document(c *conversation, line int64) error {
	if c == nil {
		return nil
	}
	for _, reason := range c.problems {
		j.report(line, reason)
	}
	if len(c.nodes) == 0 && j.o.Growing {
		return nil
	}
	if len(c.nodes) == 0 {
		j.report(line, "a conversation without messages")
		return nil
	}
	c.finish(j.format)
	result, err := j.attempt(c.info, func(s *session) error { return s.tree(c) })
	if !j.emit(result, err) {
		return errStop
	}
	return j.ctx.Err()
}

// keep adds a member of the file to those beside the messages.
func (c *conversation) keep(name string, v jsontext.Value) {
	if c.extra == nil {
		c.extra = []byte{'{'}
	}
	c.extra = appendMember(c.extra, name, v)
}

// titleBy makes the title from a text of the node that comes next.
func (c *conversation) titleBy(text string) {
	if c.info.Title = title(text); c.info.Title != "" {
		c.titled = len(c.nodes) + 1
	}
}

// titleByPrompt makes the title from a text of the node that comes next, in the role of the user, if it is the first thing
// that a person says.
func (c *conversation) titleByPrompt(text string) {
	before := c.info.Title
	if c.info.Title = promptTitle(before, text); c.info.Title != before {
		c.titled = len(c.nodes) + 1
	}
}

// append adds a message behind the last one.
func (c *conversation) append(own string, r Record) {
	n := treeNode{name: fmt.Sprint(len(c.nodes)), own: own, Record: r}
	if len(c.nodes) > 0 {
		n.parent = c.nodes[len(c.nodes)-1].name
	}
	c.nodes = append(c.nodes, n)
}

// finish derives what the messages reveal: the id, the title, the times.
func (c *conversation) finish(f Format) {
	c.info.Format, c.info.Replaces = f, true
	if c.extra != nil {
		c.extra = append(c.extra, '}')
		if len(c.extra) <= MaxExtra {
			c.info.Extra = c.extra
		}
	}
	for i := range c.nodes {
		c.info.span(c.nodes[i].CreatedAt)
	}
	switch {
	case c.info.Session != "":
		c.info.ID = ContextID(f, c.info.Session)
	case len(c.opening) > 0:
		c.info.ID = openingID(f, c.opening)
	default:
		c.info.ID = openingID(f, []json.RawMessage{c.nodes[0].Body})
	}
}

// tree stores the nodes of a conversation.
func (s *session) tree(c *conversation) error {
	if err := s.extra(c.extra); err != nil {
		return err
	}
	if s.info.Format == OpenAssistant {
		s.walk.same = sameButNull
	}
	stateAt, _ := s.conv.Times()
	newer := !c.info.StateAt.Before(stateAt)
	main, err := c.plan(func(t *target, n *treeNode) error {
		t.update, t.byID = newer, !newer
		if c.titled > 0 && n == &c.nodes[c.titled-1] {
			s.titled = "" // this record gives it
		}
		return s.putRecord(t, n.own, n.Record)
	})
	if err != nil {
		return err
	}
	if len(c.mirrors) > 0 {
		side := &target{name: "trajectory", side: true, update: newer, byID: !newer}
		for _, r := range c.mirrors {
			if err := s.putRecord(side, "", r); err != nil {
				return err
			}
		}
	}
	// The branch that people see in their tool, whichever was stored last.
	s.walk.active = main
	return nil
}

// without returns an object without one of its members.
func without(object json.RawMessage, name string) json.RawMessage {
	b := []byte{'{'}
	_ = message.Members(object, func(key string, v jsontext.Value) error {
		if key != name {
			b = appendMember(b, key, v)
		}
		return nil
	})
	return append(b, '}')
}

// WithMember returns an object with a value in place of a member, at its end.
func WithMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	b := without(object, name)
	return append(appendMember(b[:len(b)-1], name, jsontext.Value(value)), '}')
}

var errNesting = fmt.Errorf("replies are nested deeper than %d", maxNesting)

// nest adds a message and those nested in its member children. describe returns the message's own id and properties.
func (c *conversation) nest(body json.RawMessage, parent, children string, depth int,
	describe func(body json.RawMessage) (own string, r Record),
) error {

	if depth > maxNesting {
		return errNesting
	}
	own, r := describe(body)
	r.Body = without(body, children)
	n := treeNode{name: fmt.Sprint(len(c.nodes)), parent: parent, own: own, Record: r}
	c.nodes = append(c.nodes, n)
	return elements(member(jsontext.Value(body), children), func(v jsontext.Value) error {
		reply, err := message.Compact(v)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("a reply to %.64q: %s", own, reasonOf(err)))
			return nil
		}
		return c.nest(reply, n.name, children, depth+1, describe)
	})
}

// Formats in which a message holds the replies to it. A record is a message without its replies.

// sameButNull reports whether two messages differ only in members that are null. OpenAssistant publishes each tree twice:
// only one of the two files has these members, so neither is a later state of the other.
func sameButNull(a, b json.RawMessage) bool { return bytes.Equal(withoutNull(a), withoutNull(b)) }

func withoutNull(object json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	_ = message.Members(object, func(key string, v jsontext.Value) error {
		if v.Kind() != 'n' {
			b = appendMember(b, key, v)
		}
		return nil
	})
	return append(b, '}')
}
