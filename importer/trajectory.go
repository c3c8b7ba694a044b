package importer

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/go-json-experiment/json/jsontext"
)

// Trajectories of agents that solve one task. They have no id: the messages up to the first reply identify a task, and
// several runs of a task are branches of one context.

// parseSWEAgent reads a trajectory of SWE-agent. The steps under "trajectory" repeat the messages under "history", with
// the state of the environment; without a history they are the conversation.
func parseSWEAgent(body json.RawMessage) (*conversation, error) {
	c, history, steps, err := parseTrajectory(body, "history", "trajectory")
	if err != nil {
		return nil, err
	}
	if len(history) == 0 && len(steps) == 0 {
		return nil, errors.New(`not a trajectory: it has no "history" and no "trajectory"`)
	}
	c.turns(history)
	for _, body := range steps {
		r := Record{Role: message.RoleMirror, Type: "step", Body: body}
		r.says.addStep(body)
		if len(history) == 0 {
			r.Role = "assistant"
			c.append("", r)
			c.opening = []json.RawMessage{c.nodes[0].Body}
			continue
		}
		c.mirrors = append(c.mirrors, r)
	}
	if config := member(jsontext.Value(body), "replay_config"); config.Kind() == '"' {
		config = jsontext.Value(text(config, len(config)))
		c.info.Model = textAt(config, maxName, "agent", "model", "name")
	} else {
		c.info.Model = textAt(config, maxName, "agent", "model", "name")
	}
	return c, nil
}

// parseMiniSWEAgent reads a trajectory of mini-swe-agent.
func parseMiniSWEAgent(body json.RawMessage) (*conversation, error) {
	c, messages, _, err := parseTrajectory(body, "messages", "")
	if err != nil {
		return nil, err
	}
	c.turns(messages)
	c.info.Model = textAt(jsontext.Value(body), maxName, "info", "config", "model", "model_name")
	return c, nil
}

// parseTrajectory splits a file into two of its lists and the other members.
func parseTrajectory(body json.RawMessage, first, second string) (c *conversation, one, two []json.RawMessage, err error) {
	c = &conversation{}
	lists := map[string]*[]json.RawMessage{first: &one, second: &two}
	err = message.Members(body, func(name string, v jsontext.Value) error {
		list := lists[name]
		if list == nil || *list != nil || v.Kind() != '[' {
			c.keep(name, v)
			return nil
		}
		*list = []json.RawMessage{}
		return elements(v, func(v jsontext.Value) error {
			body, err := message.Compact(v)
			if err != nil {
				c.problems = append(c.problems, "an element of "+name+": "+reasonOf(err))
				return nil
			}
			*list = append(*list, body)
			return nil
		})
	})
	return c, one, two, err
}

// turns adds chat messages one after the other. The task is the last prompt before the first reply.
func (c *conversation) turns(messages []json.RawMessage) {
	replied := false
	for _, body := range messages {
		r := Record{Body: body}
		r.Role, _, r.CreatedAt = message.Describe(body)
		r.Type = textAt(jsontext.Value(body), maxName, "message_type")
		r.says.addStep(body)
		if replied = replied || r.Role == "assistant"; !replied {
			c.opening = append(c.opening, body)
			if r.Role == "user" {
				c.titleBy(taskOf(content(body)))
			}
		}
		c.append("", r)
	}
}

// taskOf is the task in a prompt that surrounds it with instructions.
func taskOf(prompt string) string {
	for _, mark := range []string{"ISSUE:", "<pr_description>", "PROBLEM STATEMENT:", "DESCRIPTION:"} {
		if _, task, ok := strings.Cut(prompt, mark); ok && strings.TrimSpace(task) != "" {
			task, _, _ = strings.Cut(task, "</")
			task, _, _ = strings.Cut(strings.TrimSpace(task), "\n\n")
			return task
		}
	}
	return prompt
}

// addStep adds what a message of a trajectory, or a step that repeats messages, says.
func (s *says) addStep(body json.RawMessage) {
	_ = message.Members(body, func(name string, v jsontext.Value) error {
		switch name {
		case "content", "thought", "action", "response", "observation":
			contentTexts(v, func(t string) { s.add(t) })
		case "query":
			_ = elements(v, func(m jsontext.Value) error {
				contentTexts(member(m, "content"), func(t string) { s.add(t) })
				return nil
			})
		}
		return nil
	})
}
