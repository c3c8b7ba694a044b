package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
)

const (
	// lively is the age of the newest message up to which a context may be live.
	lively = time.Hour
	// maxLive bounds the contexts that are looked at, and liveTail the messages of each.
	maxLive  = 50
	liveTail = 64
	// working, calling and waiting are the ages up to which an agent is said to work after a message, to work on a call
	// without a result, and to wait for a person.
	working = time.Minute
	calling = 10 * time.Minute
	waiting = 30 * time.Minute
)

// Live states of a context. Records say no more than when something was written, so each comes with its evidence.
const (
	stateWorks  = "works"
	stateWaits  = "waits"
	stateSilent = "silent"
)

type liveContext struct {
	Context string            `json:"context"`
	Title   string            `json:"title"`
	Labels  map[string]string `json:"labels,omitempty"`
	Branch  string            `json:"branch"` // the active one

	State  string    `json:"state"`
	At     time.Time `json:"at"`               // of the newest message
	Call   *liveCall `json:"call,omitempty"`   // without a result
	Failed *liveCall `json:"failed,omitempty"` // the newest one, if it failed and nothing came after it
	Newest string    `json:"newest"`           // the beginning of the newest text
}

// liveCall is the call of a tool.
type liveCall struct {
	Name    string    `json:"name"`
	Tool    string    `json:"tool"`
	Summary string    `json:"summary"`
	At      time.Time `json:"at"`
}

type liveList struct {
	Contexts []liveContext    `json:"contexts"`
	Failures []contextFailure `json:"failures,omitempty"`
}

// listLive lists the contexts in which an agent works, or waits for a person.
func (x *Server) listLive(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).done(); err != nil {
		return err
	}
	now, v := time.Now(), x.store.of(r)
	list := liveList{Contexts: []liveContext{}}
	for s, err := range v.list(r.Context(), ctxdir.ListOptions{Order: ctxdir.OrderUpdated, Limit: maxLive}) {
		if err != nil {
			return err
		}
		if s.UpdatedAt.Before(now.Add(-lively)) {
			break
		}
		var is *liveContext
		err := v.use(r.Context(), s.ID, func(c *ctxdir.Context) (err error) {
			is, err = liveOf(r.Context(), c, s, now)
			return err
		})
		switch {
		case r.Context().Err() != nil:
			return r.Context().Err()
		case errors.Is(err, ctxdir.ErrNotExist): // it was removed meanwhile
		case err != nil:
			list.Failures = append(list.Failures, contextFailure{"failed", s.ID.String(), record.Problem(err)})
		case is != nil:
			list.Contexts = append(list.Contexts, *is)
		}
	}
	return sendDocument(w, http.StatusOK, list)
}

// liveOf is what an agent does in a context, nil if nothing says that one is there.
func liveOf(ctx context.Context, c *ctxdir.Context, s ctxdir.Summary, now time.Time) (*liveContext, error) {
	b := c.Active()
	n, err := b.Len(ctx)
	if err != nil {
		return nil, err
	}
	is := &liveContext{Context: s.ID.String(), Title: s.Title, Labels: s.Labels, Branch: b.Name()}
	reading := &reading{to: n, open: map[string]*partRecord{}}
	for m, err := range b.Messages(ctx, max(n-liveTail, 0), n) {
		if err != nil {
			return nil, err
		}
		if err := reading.add(ctx, m); err != nil {
			return nil, err
		}
	}
	open := map[*partRecord]bool{}
	for _, call := range reading.open {
		open[call] = true
	}
	// Records that were imported without a time say nothing about now.
	imported := transcript.ObjectOf(c.Metadata().Extra)["import"] != nil
	answered := false
	for i := range reading.all {
		m := &reading.all[i]
		if m.Bookkeeping || imported && !m.timed {
			continue
		}
		is.At = m.At
		for j := range m.Parts {
			switch p := &m.Parts[j]; {
			case p.Kind == transcript.Call.String():
				answered, is.Failed = false, nil
				call := &liveCall{p.Name, p.Tool, p.Summary, m.At}
				if open[p] {
					is.Call = call
				} else if slices.ContainsFunc(p.Results, func(r resultRecord) bool { return r.Failed }) {
					is.Failed = call
				}
			case p.Kind == transcript.Text.String() && p.Text != "":
				is.Newest, is.Failed = line(p.Text), nil
				answered = m.Voice == transcript.Assistant
			}
		}
		if m.Voice == transcript.User && len(m.Parts) > 0 { // what came before is over
			is.Call, is.Failed = nil, nil
		}
	}
	is.State = stateOf(now.Sub(is.At), is.Call != nil, is.Failed != nil, answered)
	if is.At.IsZero() || is.State == "" {
		return nil, nil
	}
	return is, nil
}

// stateOf is the state of a context whose newest message has an age, "" if it is not live.
func stateOf(age time.Duration, open, failed, answered bool) string {
	switch {
	case age < working || open && age < calling:
		return stateWorks
	case open && age < lively, failed && age < waiting:
		return stateSilent
	case answered && !open && age < waiting:
		return stateWaits
	}
	return ""
}
