package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/outline"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/transcript"
)

const (
	// turnsListed and maxTurnsListed are the default and the largest number of turns in a page.
	turnsListed    = 60
	maxTurnsListed = 500
	// stretches and maxStretches are the default and the largest number of stretches of a map.
	stretches    = 400
	maxStretches = 2000
)

type turnRecord struct {
	Number  int64            `json:"number"`
	From    int64            `json:"from"`
	To      int64            `json:"to"`
	ID      string           `json:"id,omitempty"`
	At      time.Time        `json:"at,omitzero"`
	Until   time.Time        `json:"until,omitzero"`
	Prompt  string           `json:"prompt"`
	Answer  string           `json:"answer,omitempty"`
	Prompts int64            `json:"prompts"`
	Calls   map[string]int64 `json:"calls"`
	Failed  int64            `json:"failed"`
	Added   int64            `json:"added"`
	Removed int64            `json:"removed"`
	Breaks  int64            `json:"breaks"`
}

func turnRecordOf(t *outline.Turn) turnRecord {
	return turnRecord{
		t.Number, t.From, t.To, record.ID(t.ID), t.At, t.Until, t.Prompt, t.Answer, t.Prompts, callsOf(&t.Calls), t.Failed, t.Added, t.Removed,
		t.Breaks,
	}
}

// callsOf are numbers of calls by the kind of the tool, without zeros.
func callsOf(calls *outline.Calls) map[string]int64 {
	all := map[string]int64{}
	for kind, n := range calls {
		if n > 0 {
			all[transcript.ToolKind(kind).String()] = n
		}
	}
	return all
}

type turnList struct {
	Turns  []turnRecord `json:"turns"`
	Count  int64        `json:"count"`          // of the branch, without turn 0
	Length int64        `json:"length"`         // of the branch, in messages
	Next   int64        `json:"next,omitempty"` // continue from this turn
}

// outlined is a branch whose outline is up to date.
type outlined struct {
	*outline.Branch
	index *search.Index
	c     *ctxdir.Context
	info  ctxdir.BranchInfo
}

// withOutline calls f with the branch in the path.
func (x *Server) withOutline(r *http.Request, f func(o *outlined) error) error {
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		o, err := x.outlineOf(r.Context(), c, b)
		if err != nil {
			return err
		}
		return f(o)
	})
}

func (x *Server) outlineOf(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch) (*outlined, error) {
	index, err := x.index.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := index.UpdateContext(ctx, c.ID()); err != nil {
		return nil, err
	}
	info, err := branchInfo(ctx, c, b.Name())
	if err != nil {
		return nil, err
	}
	o := &outlined{index: index, c: c, info: info}
	o.Branch, err = index.Outline(ctx, c.ID(), info.Line, info.Messages)
	return o, err
}

// turns returns the turns with the numbers from to, without to.
func (o *outlined) turns(ctx context.Context, from, to int64) ([]turnRecord, error) {
	turns, err := o.index.Turns(ctx, o.c.ID(), o.info.Line, o.Branch, from, to)
	all := []turnRecord{}
	for i := range turns {
		if t := &turns[i]; t.Number > 0 || t.From < t.To {
			all = append(all, turnRecordOf(t))
		}
	}
	return all, err
}

// listTurns lists the turns of a branch: the newest ones unless the request says which.
func (x *Server) listTurns(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	from, at, filter := p.number("from", -1), p.number("at", -1), p.text("q")
	limit := int64(p.limit(turnsListed, maxTurnsListed))
	if from >= 0 && at >= 0 {
		p.fail("from", "from and at cannot be used together")
	}
	if err := p.done(); err != nil {
		return err
	}
	return x.withOutline(r, func(o *outlined) (err error) {
		list := turnList{Count: o.Turns(), Length: o.Length()}
		switch {
		case at >= 0:
			from = o.TurnAt(at)
		case from < 0 && filter == "":
			from = max(list.Count+1-limit, 0)
		}
		if filter == "" {
			list.Turns, err = o.turns(r.Context(), from, from+limit)
			if from+limit <= list.Count {
				list.Next = from + limit
			}
		} else {
			err = o.filtered(r.Context(), &list, filter, from, int(limit))
		}
		if err != nil {
			return err
		}
		return sendDocument(w, http.StatusOK, list)
	})
}

// filtered fills a list with turns whose prompts have the words of a filter.
func (o *outlined) filtered(ctx context.Context, list *turnList, filter string, from int64, limit int) error {
	numbers, err := o.index.FindTurns(ctx, o.c.ID(), o.info.Line, o.Branch, filter, from, limit+1)
	list.Turns = []turnRecord{}
	for i, number := range numbers {
		if i == limit {
			list.Next = number
			break
		}
		var turn []turnRecord
		if err == nil {
			turn, err = o.turns(ctx, number, number+1)
		}
		list.Turns = append(list.Turns, turn...)
	}
	return err
}

type mapDocument struct {
	Length   int64   `json:"length"`
	Turns    int64   `json:"turns"`
	Size     int64   `json:"size"` // of a stretch, in messages
	Prompts  []int64 `json:"prompts"`
	Replies  []int64 `json:"replies"`
	Calls    []int64 `json:"calls"`
	Edits    []int64 `json:"edits"`
	Failures []int64 `json:"failures"`
	Breaks   []int64 `json:"breaks"`
	BreaksAt []int64 `json:"breaks_at"`
}

// getMap says how many prompts, calls, changes and failures each stretch of a branch has.
func (x *Server) getMap(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	n := p.number("stretches", stretches)
	if n < 1 || n > maxStretches {
		p.fail("stretches", "expected a number from 1 to %d", maxStretches)
	}
	if err := p.done(); err != nil {
		return err
	}
	return x.withOutline(r, func(o *outlined) error {
		m := o.Map(int(n))
		d := mapDocument{
			o.Length(), o.Turns(), m.Size, m.Counts[0], m.Counts[1], m.Counts[2], m.Counts[3], m.Counts[4], m.Counts[5],
			record.List(o.Breaks(maxStretches)),
		}
		return sendDocument(w, http.StatusOK, d)
	})
}
