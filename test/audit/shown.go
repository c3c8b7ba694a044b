// Package audit compares what a store shows with what its writers were told, after they were ended by whatever it was.
//
// Everything that was acknowledged must be there: each message at its position with its content, each branch under its
// name. Of what was going on, all, nothing or, of a batch, a beginning may be there, whole. Anything else must not.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/test/writer"
	"github.com/google/uuid"
)

// place is a branch of a context.
type place struct {
	context uuid.UUID
	branch  string
}

func (p place) String() string { return fmt.Sprintf("context %s, branch %q", p.context, p.branch) }

// name is a message in a context, or the name that configuration has.
type name struct {
	context uuid.UUID
	id      uuid.UUID
}

// setting is a member of a context's configuration.
type setting struct {
	context uuid.UUID
	member  string
}

// Shown is what a store shows.
type Shown struct {
	branches map[place][]uuid.UUID
	sums     map[name]writer.Sum
	erased   map[name]bool
	settings map[setting]string
	Messages int // on all branches
}

// Look reads a store at which nobody has worked yet.
func Look(ctx context.Context, dir string) (Shown, error) {
	s, err := ctxdir.Open(dir)
	if err != nil {
		return Shown{}, err
	}
	defer s.Close()
	shown, problems, err := read(ctx, s)
	if err == nil && len(problems) > 0 {
		err = errors.New(problems[0].Detail)
	}
	return shown, err
}

// read reads every branch of every context. Problems are what cannot be read.
func read(ctx context.Context, s *ctxdir.Store) (Shown, []Problem, error) {
	shown := Shown{branches: map[place][]uuid.UUID{}, sums: map[name]writer.Sum{}, erased: map[name]bool{}, settings: map[setting]string{}}
	var problems []Problem
	for id, err := range s.IDs() {
		if err != nil {
			return Shown{}, nil, err
		}
		p, err := shown.read(ctx, s, id)
		if problems = append(problems, p...); err != nil {
			problems = append(problems, Problem{Unreadable, fmt.Sprintf("context %s: %v", id, err)})
		}
	}
	return shown, problems, nil
}

func (s *Shown) read(ctx context.Context, store *ctxdir.Store, id uuid.UUID) (problems []Problem, err error) {
	c, err := store.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Summary().Problem; err != nil {
		problems = append(problems, Problem{Unreadable, fmt.Sprintf("context %s: %v", id, err)})
	}
	m := c.Metadata()
	var config map[string]json.RawMessage
	if m.Config != nil {
		if err := json.Unmarshal(m.Config, &config); err != nil {
			return problems, fmt.Errorf("configuration: %w", err)
		}
	}
	for member, value := range config {
		var text string
		_ = json.Unmarshal(value, &text) // other values count as empty: writers set texts only
		s.settings[setting{id, member}] = text
	}
	for _, b := range m.Branches {
		at := place{id, b.Name}
		s.branches[at] = nil
		open, err := c.Branch(b.Name)
		if err != nil {
			return problems, err
		}
		for m, err := range open.Messages(ctx, 0, ctxdir.End) {
			if err != nil {
				return problems, fmt.Errorf("branch %q: %w", b.Name, err)
			}
			if p := s.take(ctx, at, m); p != nil {
				problems = append(problems, *p)
			}
		}
	}
	return problems, nil
}

// take notes one message.
func (s *Shown) take(ctx context.Context, at place, m *ctxdir.Message) *Problem {
	position := len(s.branches[at])
	s.branches[at] = append(s.branches[at], m.ID)
	s.Messages++
	fail := func(what any) *Problem {
		return &Problem{Unreadable, fmt.Sprintf("%s, position %d, message %s: %v", at, position, m.ID, what)}
	}
	switch {
	case m.Position != int64(position):
		return fail(fmt.Sprintf("it tells position %d", m.Position))
	case errors.Is(m.Unavailable, ctxdir.ErrErased):
		s.erased[name{at.context, m.ID}] = true
		return nil
	case m.Unavailable != nil:
		return fail(m.Unavailable)
	case m.Edited:
		return fail("it is said to be edited")
	}
	body, err := m.Body(ctx)
	if err != nil {
		return fail(err)
	}
	s.sums[name{at.context, m.ID}] = writer.SumOf(body)
	return nil
}

// same tells what another look at the same store shows differently. Messages that were being erased may be erased then.
func (s *Shown) same(again Shown, erasing map[name]bool) (problems []Problem) {
	for at, ids := range s.branches {
		if other, ok := again.branches[at]; !ok || !slices.Equal(ids, other) {
			why := fmt.Sprintf("%s showed %d messages before the repair, %d others after it", at, len(ids), len(other))
			problems = append(problems, Problem{Lost, why})
		}
	}
	for n, sum := range s.sums {
		if again.sums[n] != sum && (!erasing[n] || !again.erased[n]) {
			problems = append(problems, Problem{Altered, fmt.Sprintf("context %s, message %s is another one after the repair", n.context, n.id)})
		}
	}
	for n := range s.erased {
		if _, ok := again.sums[n]; ok {
			problems = append(problems, Problem{Invented, fmt.Sprintf("context %s, message %s was erased before the repair", n.context, n.id)})
		}
	}
	for k, value := range s.settings {
		if again.settings[k] != value {
			problems = append(problems, Problem{Altered, fmt.Sprintf("context %s, %s is another one after the repair", k.context, k.member)})
		}
	}
	return problems
}
