package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
)

// messageRef is how an argument names a message: by a position, or by an id, which may be a beginning.
type messageRef struct {
	text     string
	position int64
	id       uuid.UUID // uuid.Nil for a position and for a beginning
	part     string    // of an id, in lower case
}

// parseMessageRef parses POSITION or ID. Digits alone are always a position. Any other text counts as the beginning of
// an id: whether a message has it, find says.
func parseMessageRef(text string) (messageRef, error) {
	if text == "" {
		return messageRef{}, badArgument(`run "ctxtool show CONTEXT --no-content" to list positions and ids`, "MESSAGE is empty")
	}
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return messageRef{text: text, position: int64(n)}, nil
	}
	if id, err := uuid.Parse(text); err == nil && len(text) == len(id.String()) && id != uuid.Nil {
		return messageRef{text: text, id: id}, nil
	}
	return messageRef{text: text, part: strings.ToLower(text)}, nil
}

// parseMessageRefs parses arguments before a verb opens the store.
func parseMessageRefs(args []string) (refs []messageRef, err error) {
	for _, text := range args {
		r, err := parseMessageRef(text)
		if err != nil {
			return nil, err
		}
		refs = append(refs, r)
	}
	return refs, nil
}

// find completes a beginning with the id that only one message of a context has.
func (r *messageRef) find(ctx context.Context, c *ctxdir.Context) error {
	if r.part == "" {
		return nil
	}
	var found []uuid.UUID
	err := eachID(ctx, c, func(id uuid.UUID) {
		if strings.HasPrefix(id.String(), r.part) && !slices.Contains(found, id) {
			found = append(found, id)
		}
	})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return &ctxdir.Error{
			Op: findMessage, Context: c.ID(), Err: fmt.Errorf("%w: no message id begins with %q", ctxdir.ErrNotExist, r.text),
		}
	case len(found) > 1:
		return &ctxdir.Error{
			Op: findMessage, Context: c.ID(), Matches: found,
			Err: fmt.Errorf("%w: %q matches %d message ids", ctxdir.ErrAmbiguous, r.text, len(found)),
		}
	}
	r.id, r.part = found[0], ""
	return nil
}

// eachID calls f with the id of each message that a branch shows. A message that branches share comes several times.
func eachID(ctx context.Context, c *ctxdir.Context, f func(id uuid.UUID)) error {
	branches, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	for _, info := range branches {
		b, err := c.Branch(info.Name)
		if err != nil {
			return err
		}
		for m, err := range b.Messages(ctx, 0, ctxdir.End) {
			if err != nil {
				return err
			}
			f(m.ID)
		}
	}
	return nil
}

// idOf is the id of the message that a reference names; a position is one of the branch.
func (r *messageRef) idOf(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch) (uuid.UUID, error) {
	if err := r.find(ctx, c); err != nil || r.id != uuid.Nil {
		return r.id, err
	}
	n, err := b.Len(ctx)
	if err == nil && r.position >= n {
		err = fmt.Errorf("%w %d: the branch has %s", ctxdir.ErrPosition, r.position, plain.Count(n, "message"))
		err = &ctxdir.Error{Op: findMessage, Context: c.ID(), Branch: b.Name(), Err: err}
	}
	if err != nil {
		return uuid.Nil, err
	}
	found, err := b.Range(ctx, r.position, r.position+1)
	if err != nil {
		return uuid.Nil, err
	}
	return found[0].ID, nil
}

// endOf is the number of messages of a fork: those before a position, or up to the message with an id.
func (r *messageRef) endOf(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch) (int64, error) {
	if err := r.find(ctx, c); err != nil || r.id == uuid.Nil {
		return r.position, err
	}
	last, err := b.Message(ctx, r.id)
	if err != nil {
		return 0, err
	}
	return last.Position + 1, nil
}

// idsOf returns the ids of messages, each once. It opens the context only if they are not all there.
func idsOf(ctx context.Context, s *ctxdir.Store, id uuid.UUID, branch string, refs []messageRef) (ids []uuid.UUID, err error) {
	add := func(id uuid.UUID) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if !slices.ContainsFunc(refs, func(r messageRef) bool { return r.id == uuid.Nil }) && branch == "" {
		for _, r := range refs {
			add(r.id)
		}
		return ids, nil
	}
	return ids, withOpen(ctx, s, id, func(c *ctxdir.Context) error {
		b, err := branchOf(c, branch)
		for i := range refs {
			if err != nil {
				return err
			}
			var id uuid.UUID
			if id, err = refs[i].idOf(ctx, c, b); err == nil {
				add(id)
			}
		}
		return err
	})
}
