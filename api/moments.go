package api

import (
	"net/http"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
)

type momentList struct {
	Moments  []record.Moment  `json:"moments"`
	Failures []contextFailure `json:"failures,omitempty"` // contexts that could not be read
}

// listMoments lists the moments of the store or of contexts, the most relevant first.
func (x *Server) listMoments(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	v, nothing := x.store.of(r), false
	ids, err := v.contextsOf(r.Context(), p)
	if err == nil {
		ids, nothing, err = v.among(r.Context(), ids, "")
	}
	if err != nil {
		return err
	}
	limit, types, tags := p.limit(listed, maxListed), p.all("type"), p.all("tag")
	if err := p.done(); err != nil {
		return err
	}
	var all []moment.Moment
	list := momentList{Moments: []record.Moment{}}
	if nothing {
		return sendDocument(w, http.StatusOK, list)
	}
	for m, err := range moment.InStore(r.Context(), v.s, ids...) {
		switch {
		case r.Context().Err() != nil:
			return r.Context().Err()
		case err != nil:
			list.Failures = append(list.Failures, contextFailure{"failed", m.Context.String(), record.Problem(err)})
		case (len(types) == 0 || slices.Contains(types, string(m.Type))) && hasAll(m.Tags, tags):
			all = append(all, m)
		}
	}
	all = moment.Rank(all)
	for i := range all[:min(limit, len(all))] {
		list.Moments = append(list.Moments, record.OfMoment(&all[i]))
	}
	return sendDocument(w, http.StatusOK, list)
}

func hasAll(tags, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(tag string) bool { return !slices.Contains(tags, tag) })
}

type newMoment struct {
	Type       string             `json:"type"`
	Content    string             `json:"content"`
	Background string             `json:"background"`
	Tags       []string           `json:"tags"`
	References []moment.Reference `json:"references"`
	Relevance  float64            `json:"relevance"`
	From       []uuid.UUID        `json:"from"`
}

// addMoment adds a moment to a context. The same moment again is the same moment.
func (x *Server) addMoment(w http.ResponseWriter, r *http.Request) error {
	var n newMoment
	if err := readDocument(r, &n); err != nil {
		return err
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		added, err := moment.Add(r.Context(), c, moment.Moment{
			Type: moment.Type(n.Type), Content: n.Content, Background: n.Background, Tags: n.Tags, References: n.References,
			Relevance: n.Relevance, From: n.From,
		})
		if err != nil {
			return err
		}
		if len(added) == 0 {
			return problem(codeExists, "the context has this moment already")
		}
		return sendDocument(w, http.StatusCreated, record.OfMoment(&added[0]))
	})
}

func (x *Server) removeMoment(w http.ResponseWriter, r *http.Request) error {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		if err := moment.Remove(r.Context(), c, id); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}
