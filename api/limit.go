package api

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// projectLabel is the label whose value is the project of a context.
const projectLabel = "project"

type limitKey struct{}

// LimitTo limits requests with the context that it returns to some projects: the contexts whose label "project" is one of
// them. Everything else is then as if it were not there, and what would tell of the whole store answers 404. A context that
// such a request creates belongs to the first project. Without a project, there is nothing.
func LimitTo(ctx context.Context, projects ...string) context.Context {
	return context.WithValue(ctx, limitKey{}, slices.Clone(projects))
}

// whole is a store that a request may be allowed to see in part only: so nothing reaches it but through a view.
type whole struct{ s *ctxdir.Store }

// view is what a request sees of a store.
type view struct {
	s        *ctxdir.Store
	limited  bool
	projects []string
}

func (w whole) of(r *http.Request) view {
	projects, limited := r.Context().Value(limitKey{}).([]string)
	return view{w.s, limited, projects}
}

// covers reports whether an operation with a path may have a request. A limited one may have those of one context, and those
// of which somebody has looked that they keep to the projects.
func (v view) covers(path string, looked bool) bool {
	return !v.limited || looked || strings.HasPrefix(path, "/v1/contexts/{context}")
}

func (v view) has(labels map[string]string) bool {
	project, ok := labels[projectLabel]
	return !v.limited || ok && slices.Contains(v.projects, project)
}

// list is [ctxdir.Store.List].
func (v view) list(ctx context.Context, o ctxdir.ListOptions) iter.Seq2[ctxdir.Summary, error] {
	if !v.limited {
		return v.s.List(ctx, o)
	}
	most := o.Limit
	o.Limit = 0
	return func(yield func(ctxdir.Summary, error) bool) {
		n := 0
		for s, err := range v.s.List(ctx, o) {
			if err == nil && !v.has(s.Labels) {
				continue
			}
			if n++; !yield(s, err) || n == most {
				return
			}
		}
	}
}

// among returns the contexts that a question is about, for functions that take none as all: those that were asked for, or in
// a limited view all of a kind. With nothing, there is no context that it could be about.
func (v view) among(ctx context.Context, asked []uuid.UUID, kind string) (ids []uuid.UUID, nothing bool, err error) {
	if !v.limited || len(asked) > 0 {
		return asked, false, nil
	}
	for s, err := range v.list(ctx, ctxdir.ListOptions{Kind: kind, Order: ctxdir.OrderCreated}) {
		if err != nil {
			return nil, false, err
		}
		ids = append(ids, s.ID)
	}
	return ids, len(ids) == 0, nil
}

// resolve is [ctxdir.Store.Resolve].
func (v view) resolve(ctx context.Context, ref string) (uuid.UUID, error) {
	if !v.limited {
		return v.s.Resolve(ref)
	}
	if id, err := uuid.Parse(ref); err == nil && len(ref) == 36 {
		return id, v.use(ctx, id, func(*ctxdir.Context) error { return nil })
	}
	var found []uuid.UUID
	for s, err := range v.list(ctx, ctxdir.ListOptions{Kind: "*", Order: ctxdir.OrderCreated}) {
		if err != nil {
			return uuid.Nil, err
		}
		if names(ref, &s) {
			found = append(found, s.ID)
		}
	}
	switch len(found) {
	case 0:
		return uuid.Nil, notThere(ref)
	case 1:
		return found[0], nil
	}
	p := problem(codeAmbiguous, "%q could be any of %d contexts", short(ref), len(found))
	p.Matches = found
	return uuid.Nil, p
}

// names reports whether a text names a context, as [ctxdir.Store.Resolve] has it.
func names(ref string, s *ctxdir.Summary) bool {
	if ref == "" || s.ExternalID == ref || s.Kind != "" && s.ExternalID != "" && s.Kind+"/"+s.ExternalID == ref {
		return ref != ""
	}
	id, part := s.ID.String(), strings.ToLower(ref)
	return strings.HasPrefix(id, part) || strings.HasSuffix(id, part) || strings.HasPrefix(id[strings.LastIndexByte(id, '-')+1:], part)
}

func notThere(ref string) error {
	return problem(codeNotFound, "no context matches %q by id prefix, id suffix or external id", short(ref))
}

// use is [ctxdir.Store.Use].
func (v view) use(ctx context.Context, id uuid.UUID, f func(c *ctxdir.Context) error) error {
	if !v.limited {
		return v.s.Use(ctx, id, f)
	}
	began := false
	err := v.s.Use(ctx, id, func(c *ctxdir.Context) error {
		if !v.has(c.Metadata().Labels) {
			return notThere(id.String())
		}
		began = true
		return f(c)
	})
	if !began && errors.Is(err, ctxdir.ErrNotExist) {
		return notThere(id.String())
	}
	return err
}

// sees reports whether a context is there.
func (v view) sees(ctx context.Context, id uuid.UUID) bool {
	return !v.limited || v.use(ctx, id, func(*ctxdir.Context) error { return nil }) == nil
}

// label gives a new context its project. Whoever may choose an id could try which ones are taken.
func (v view) label(m *ctxdir.Metadata) error {
	if !v.limited {
		return nil
	}
	if m.ID != uuid.Nil || m.ExternalID != "" || m.ParentID != uuid.Nil {
		return problem(codeForbidden, "the token is of one project, with which a new context can have no id, external_id and parent_id")
	}
	project, ok := m.Labels[projectLabel]
	switch {
	case !ok && len(v.projects) > 0:
		project = v.projects[0]
	case !v.has(m.Labels):
		return problem(codeForbidden, "the token is of one project, which the label %q of a new context cannot differ from", projectLabel)
	}
	labels := map[string]string{projectLabel: project}
	for key, value := range m.Labels {
		labels[key] = value
	}
	m.Labels = labels
	return nil
}

// keyed is the id of a new context whose request has an Idempotency-Key. Keys of a project are not those of others.
func (v view) keyed(m *ctxdir.Metadata, key string) uuid.UUID {
	of := v.s.Info().ID
	if v.limited {
		of = uuid.NewSHA1(of, []byte(m.Labels[projectLabel]))
	}
	return uuid.NewSHA1(of, []byte(key))
}

// mayLabel rejects a change of labels that moves a context to another project.
func (v view) mayLabel(labels map[string]*string) error {
	if _, changes := labels[projectLabel]; changes && v.limited {
		return problem(codeForbidden, "the token is of one project, and cannot change the label %q", projectLabel)
	}
	return nil
}

// trashed returns an item of the trash of the store, if it is of a context that is there.
func (v view) trashed(ctx context.Context, item uuid.UUID) error {
	if !v.limited {
		return nil
	}
	ids, nothing, err := v.among(ctx, nil, "*")
	if err != nil {
		return err
	}
	if !nothing {
		for t, err := range v.s.Trash(ctx, ids...) {
			if err != nil {
				return err
			}
			if t.ID == item && slices.Contains(ids, t.Context) {
				return nil
			}
		}
	}
	return problem(codeNotFound, "no item of the trash has the id %s", item)
}
