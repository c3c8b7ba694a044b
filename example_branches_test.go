package ctxdir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// regenerate adds a second version of the last message, on a new branch that shows everything before it.
func regenerate(ctx context.Context, c *ctxdir.Context, name string, body json.RawMessage) (*ctxdir.Branch, error) {
	b := c.Active()
	n, err := b.Len(ctx)
	if err != nil {
		return nil, err
	}
	alt, err := b.Fork(ctx, name, n-1)
	if err != nil {
		return nil, err
	}
	if _, err := alt.Append(ctx, ctxdir.Draft{Body: body}); err != nil {
		return nil, err
	}
	return alt, c.Switch(ctx, name)
}

func ExampleBranch_Fork() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	main := c.Active()
	must(main.Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(main.Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))

	alt := must(regenerate(ctx, c, "second try", said("assistant", "Right.")))
	list(alt)
	list(main)
	fmt.Println(c.Active().Name())
	// Output:
	// 0 {"role":"user","content":"Which way?"}
	// 1 {"role":"assistant","content":"Right."}
	// 0 {"role":"user","content":"Which way?"}
	// 1 {"role":"assistant","content":"Left."}
	// second try
}

// checkpoint names a moment of a conversation. Later changes to the branch do not affect it.
func checkpoint(ctx context.Context, b *ctxdir.Branch, name string, last uuid.UUID) error {
	m, err := b.Message(ctx, last)
	if err != nil {
		return err
	}
	_, err = b.Fork(ctx, name, m.Position+1)
	return err
}

func ExampleContext_Branches() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	main := c.Active()
	at := must(main.Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	check(checkpoint(ctx, main, "before the answer", at.ID))
	must(main.Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))
	for _, b := range must(c.Branches(ctx)) {
		fmt.Printf("%s: %d messages, %d of them inherited from %q\n", b.Name, b.Messages, b.Base, b.Parent)
	}
	// Output:
	// main: 2 messages, 0 of them inherited from ""
	// before the answer: 1 messages, 1 of them inherited from "main"
}

// undo removes the newest messages from a branch. Other branches that show them keep them; the trash lists the rest for the grace period.
func undo(ctx context.Context, b *ctxdir.Branch, messages int64) error {
	n, err := b.Len(ctx)
	if err != nil {
		return err
	}
	return b.Rewind(ctx, max(n-messages, 0))
}

func ExampleBranch_Rewind() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))
	check(undo(ctx, c.Active(), 1))
	list(c.Active())
	// Output: 0 {"role":"user","content":"Which way?"}
}

// delegate makes a context for a sub-agent, with its parent and its task.
func delegate(ctx context.Context, s *ctxdir.Store, parent *ctxdir.Context, task string) (*ctxdir.Context, error) {
	c, err := s.Create(ctx, ctxdir.Metadata{ParentID: parent.ID(), Title: task, Config: json.RawMessage(`{"agent_role":"researcher"}`)})
	if err != nil {
		return nil, err
	}
	if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: said("user", task)}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// report brings the last message of a sub-agent to the parent conversation, and marks the sub-agent as done.
func report(ctx context.Context, s *ctxdir.Store, sub *ctxdir.Context) error {
	last, err := sub.Active().Last(ctx, 1)
	if err != nil || len(last) == 0 {
		return err
	}
	body, err := last[0].Body(ctx) // Stored may hold references to blobs
	if err != nil {
		return err
	}
	parent, err := s.Open(ctx, sub.Metadata().ParentID)
	if err != nil {
		return err
	}
	defer parent.Close()
	// The message keeps its id, so a second report adds nothing.
	if _, err := parent.Active().Append(ctx, ctxdir.Draft{ID: last[0].ID, Body: body}); err != nil {
		return err
	}
	return sub.Update(ctx, func(m *ctxdir.Metadata) error {
		m.State = json.RawMessage(`"done"`)
		return nil
	})
}

func ExampleStore_Create() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))

	sub := must(delegate(ctx, s, c, "Find out when the tide comes in."))
	defer sub.Close()
	must(sub.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "At four.")}))
	for range 2 {
		check(report(ctx, s, sub))
	}
	check(c.Refresh(ctx)) // the report came through another handle
	list(c.Active())
	fmt.Println(string(sub.Metadata().Config), string(sub.Metadata().State))
	// Output:
	// 0 {"role":"user","content":"Which way?"}
	// 1 {"role":"assistant","content":"At four."}
	// {"agent_role":"researcher"} "done"
}

func ExampleContext_Update() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	check(c.Update(ctx, func(m *ctxdir.Metadata) error {
		m.Title = "A walk to the lighthouse"
		m.Config = json.RawMessage(`{"model_id":"some-model","temperature":0.20}`)
		return nil
	}))
	m := c.Metadata()
	fmt.Println(m.Title, string(m.Config))
	// Output: A walk to the lighthouse {"model_id":"some-model","temperature":0.20}
}
