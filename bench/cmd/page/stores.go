package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
)

// batch is the number of messages of a commit.
const batch = 1000

// conversation makes a store with a conversation of n messages, and returns its id. A turn is a prompt, five calls of
// tools with their results, and an answer.
func conversation(ctx context.Context, dir string, n int) (id string, err error) {
	s, err := ctxdir.Init(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	labels := map[string]string{"project": "/home/ada/walk", "tool": "claude-code"}
	c, err := s.Create(ctx, ctxdir.Metadata{Title: "A long conversation", Labels: labels})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	b, err := c.Branch("main")
	if err != nil {
		return "", err
	}
	at := time.Now().Add(-time.Duration(n) * time.Second)
	drafts := make([]ctxdir.Draft, 0, batch)
	for i := range n {
		body, err := json.Marshal(message(i))
		if err != nil {
			return "", err
		}
		drafts = append(drafts, ctxdir.Draft{Body: body, CreatedAt: at.Add(time.Duration(i) * time.Second)})
		if len(drafts) == batch || i == n-1 {
			if _, err := b.AppendBatch(ctx, drafts); err != nil {
				return "", err
			}
			drafts = drafts[:0]
		}
	}
	return c.ID().String(), c.Flush(ctx)
}

type part map[string]any

// message is the message at a position, in the form of Anthropic's API.
func message(i int) map[string]any {
	turn, step := i/12, i%12
	call := fmt.Sprint("call_", turn, "_", (step-1)/2)
	switch {
	case step == 0:
		text := fmt.Sprintf("Prompt %d: where does lighthouse %d keep its lamp, and who trims it on day %d?", turn, turn%97, turn%365)
		return map[string]any{"role": "user", "content": text}
	case step == 11:
		text := fmt.Sprintf("The keeper of lighthouse %d trims the lamp.\n\n"+
			"1. The oil is in the cellar.\n2. The `wick` is changed on day %d.\n\n"+
			"```go\nfunc trim(day int) error {\n\treturn lamp.Trim(day + %d)\n}\n```\n", turn%97, turn%365, turn)
		return map[string]any{"role": "assistant", "content": []part{{"type": "text", "text": text}}}
	case step == 5:
		input := part{
			"file_path":  fmt.Sprintf("/home/ada/walk/keeper-%d.go", turn%40),
			"old_string": "lamp.Trim(day)\n", "new_string": fmt.Sprintf("lamp.Trim(day + %d)\n", turn),
		}
		return map[string]any{"role": "assistant", "content": []part{{"type": "tool_use", "id": call, "name": "Edit", "input": input}}}
	case step%2 == 1:
		input := part{"command": fmt.Sprintf("grep -rn 'wick %d' notes/day-%d.txt", turn%89, turn%365)}
		return map[string]any{"role": "assistant", "content": []part{{"type": "tool_use", "id": call, "name": "Bash", "input": input}}}
	default:
		text := fmt.Sprintf("notes/day-%d.txt:12: the wick %d is short\n", turn%365, turn%89)
		return map[string]any{"role": "user", "content": []part{{"type": "tool_result", "tool_use_id": call, "content": text}}}
	}
}

// contexts makes a store with n contexts of two messages.
func contexts(ctx context.Context, dir string, n int) (err error) {
	s, err := ctxdir.Init(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i := range n {
		at := time.Now().Add(-time.Duration(i+2) * time.Hour) // nothing of it is live
		talk := []ctxdir.Draft{
			{Body: json.RawMessage(`{"role":"user","content":"Where to?"}`), CreatedAt: at},
			{Body: json.RawMessage(`{"role":"assistant","content":"Along the quay."}`), CreatedAt: at},
		}
		labels := map[string]string{"project": fmt.Sprint("/home/ada/walk-", i%40)}
		c, err := s.Create(ctx, ctxdir.Metadata{Title: fmt.Sprint("Walk ", i), Labels: labels})
		if err != nil {
			return err
		}
		b, err := c.Branch("main")
		if err == nil {
			_, err = b.AppendBatch(ctx, talk)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			return err
		}
	}
	return nil
}
