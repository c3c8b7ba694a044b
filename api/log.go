package api

import (
	"net/http"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
)

type changeList struct {
	Changes  []record.Change `json:"changes"`
	Unlisted uint64          `json:"unlisted"`       // commits up to this one, some of which are missing or damaged
	Next     uint64          `json:"next,omitempty"` // continue after this commit
}

// listChanges lists the changes of a context, in order. A page ends with a whole commit.
func (x *Server) listChanges(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	after, limit := uint64(p.number("after", 0)), p.limit(listed, maxListed)
	if err := p.done(); err != nil {
		return err
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		ctx := r.Context()
		if err := c.Refresh(ctx); err != nil {
			return err
		}
		list := changeList{Changes: []record.Change{}}
		if after == 0 {
			list.Changes = append(list.Changes, record.OfCreation(c.Metadata()))
		}
		events, err := c.Watch(ctx, after)
		if err != nil {
			return err
		}
		defer events.Close() //nolint:errcheck // it only reads
		for e := range events.Pending(ctx) {
			if e.Kind == ctxdir.EventProblem {
				return e.Problem
			}
			if e.Kind == ctxdir.EventResync { // those before are damaged
				list.Unlisted = e.Seq
				continue
			}
			if len(list.Changes) >= limit && e.Seq != list.Changes[len(list.Changes)-1].Seq {
				list.Next = list.Changes[len(list.Changes)-1].Seq
				break
			}
			list.Changes = append(list.Changes, record.OfChange(&e))
		}
		return sendDocument(w, http.StatusOK, list)
	})
}
