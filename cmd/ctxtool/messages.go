package main

import (
	"context"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// eachMessage calls f for the messages at the positions [from, to) of a branch. A negative from counts from the end.
// Memory stays bounded.
func eachMessage(ctx context.Context, b *ctxdir.Branch, from, to int64, f func(m *ctxdir.Message) error) error {
	n, err := b.Len(ctx)
	if err != nil {
		return err
	}
	if from < 0 {
		from = max(n+from, 0)
	}
	for m, err := range b.Messages(ctx, from, min(to, n)) {
		if err != nil {
			return err
		}
		if err := f(m); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// content is how much of a message a verb reads.
func (a *app) content(none bool) record.Content {
	switch {
	case none:
		return record.None
	case a.json:
		return record.Full
	}
	return record.Texts
}

type showFlags struct {
	branch, span string
	last         int64
	from, to     int64
	noContent    bool
	full         bool
	all          bool
	tools        string
	role, typ    string
	save         string
}

// wants reports whether a message has the role and the type to show.
func (f *showFlags) wants(m *ctxdir.Message) bool {
	voice := transcript.Voice(f.role)
	role := f.role == "" || strings.EqualFold(m.Role, f.role) || voice != "" && transcript.Voice(m.Role) == voice
	return role && (f.typ == "" || m.Type == f.typ)
}
