package main

import (
	"context"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

// reader is how show reads messages.
func (f *showFlags) reader(show func(*transcript.Turn[*record.Loaded]) error) *conversation.Reader {
	return &conversation.Reader{All: f.all || f.typ != "", Read: true, NoTools: transcript.Voice(f.role) == transcript.User, Show: show}
}

// lastShown returns the position of the first of the last n messages with a head line, and the end of the branch. It
// reads ever longer ends of the branch, since most messages of an agent are bookkeeping or results.
func (f *showFlags) lastShown(ctx context.Context, b *ctxdir.Branch, n int64, json bool) (from, end int64, err error) {
	if end, err = b.Len(ctx); err != nil || n >= end {
		return 0, end, err
	}
	for span := n; ; span *= 2 {
		from = max(end-span, 0)
		heads, err := f.heads(ctx, b, from, end, json)
		if err != nil {
			return 0, 0, err
		}
		// The first of the span may continue a message before it.
		if have := int64(len(heads)); have > n || have == n && (json || f.noContent) {
			return heads[have-n], end, nil
		}
		if from == 0 {
			return 0, end, nil
		}
	}
}

// heads returns the positions in [from, to) of messages that show gives a head line.
func (f *showFlags) heads(ctx context.Context, b *ctxdir.Branch, from, to int64, json bool) (at []int64, err error) {
	v := f.reader(func(t *transcript.Turn[*record.Loaded]) error {
		if (!t.Continues || t.Message.Edited) && f.showsPart(t) {
			at = append(at, t.Message.Position)
		}
		return nil
	})
	err = eachMessage(ctx, b, from, to, func(m *ctxdir.Message) error {
		switch {
		case !f.wants(m) || !json && !f.noContent && !v.All && message.IsBookkeeping(m.Role):
			return nil
		case json || f.noContent:
			at = append(at, m.Position)
			return nil
		}
		s, err := record.Load(ctx, m, record.Texts)
		if err != nil {
			return err
		}
		return v.Add(s)
	})
	if err == nil {
		err = v.Flush()
	}
	return at, err
}

// showsPart reports whether show prints more of a message than results of calls before it.
func (f *showFlags) showsPart(t *transcript.Turn[*record.Loaded]) bool {
	return len(t.Parts) == 0 || slices.ContainsFunc(t.Parts, func(p transcript.Part) bool {
		switch p.Kind {
		case transcript.Call:
			return f.tools != toolsNone
		case transcript.Result:
			return f.tools != toolsNone && (f.role != "" || p.ID == "")
		}
		return true
	})
}
