package api

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/disk"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

type storeDocument struct {
	ID            string    `json:"id"`
	Version       string    `json:"version"`
	ReadOnly      bool      `json:"read_only"`
	LastCollected time.Time `json:"last_collected,omitzero"`
	Problem       string    `json:"problem,omitempty"`
	Shared        []Shared  `json:"shared,omitempty"`
}

// Shared says what another user of the server lets the user of a request read.
type Shared struct {
	Owner    string   `json:"owner"` // the name: below /shared/OWNER is the API, limited to the projects
	Projects []string `json:"projects"`
}

type sharedKey struct{}

// WithShared notes what others share with the user of a request.
func WithShared(ctx context.Context, all []Shared) context.Context {
	return context.WithValue(ctx, sharedKey{}, all)
}

func (x *Server) getStore(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).done(); err != nil {
		return err
	}
	info := x.store.of(r).s.Info()
	shared, _ := r.Context().Value(sharedKey{}).([]Shared)
	return sendDocument(w, http.StatusOK, storeDocument{
		info.ID.String(), x.o.Version, x.o.ReadOnly, info.LastCollected, record.Problem(info.Problem), shared,
	})
}

type diskDocument struct {
	Kinds []diskKind `json:"kinds"`
	Freed int64      `json:"freed_bytes"` // an estimate
}

type diskKind struct {
	Kind string `json:"kind"`
	disk.Use
}

// getDisk says what the files of the store take on the disk. It looks at each of them.
func (x *Server) getDisk(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).done(); err != nil {
		return err
	}
	whole, err := disk.Whole(r.Context(), x.store.of(r).s, x.o.Files)
	if err != nil {
		return err
	}
	d := diskDocument{Kinds: []diskKind{}, Freed: whole.Freed(r.Context())}
	for _, kind := range disk.Kinds {
		if use := whole.OfKind(kind); use.Files > 0 {
			d.Kinds = append(d.Kinds, diskKind{kind, use})
		}
	}
	return sendDocument(w, http.StatusOK, d)
}

type trashList struct {
	Items    []record.Trashed `json:"items"`
	Failures []contextFailure `json:"failures,omitempty"` // trash that could not be read
}

func (x *Server) listTrash(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	v := x.store.of(r)
	var ids []uuid.UUID
	for _, ref := range p.all("context") {
		id, err := v.resolve(r.Context(), short(ref))
		if removed, perr := parseID(ref); err != nil && perr == nil && !v.limited {
			id, err = removed, nil // the context may be in the trash itself
		}
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := p.done(); err != nil {
		return err
	}
	after, err := record.Grace(v.s)
	if err != nil {
		return err
	}
	list := trashList{Items: []record.Trashed{}}
	ids, nothing, err := v.among(r.Context(), ids, "*")
	if err != nil {
		return err
	}
	if nothing {
		return sendDocument(w, http.StatusOK, list)
	}
	for item, err := range v.s.Trash(r.Context(), ids...) {
		switch {
		case err != nil:
			return err
		case item.ID == uuid.Nil:
			list.Failures = append(list.Failures, contextFailure{"failed", record.ID(item.Context), record.Problem(item.Problem)})
		default:
			list.Items = append(list.Items, record.OfTrashed(item, after))
		}
	}
	return sendDocument(w, http.StatusOK, list)
}

func (x *Server) restoreItem(w http.ResponseWriter, r *http.Request) error {
	if err := noBody(r); err != nil {
		return err
	}
	id, err := parseID(r.PathValue("item"))
	if err != nil {
		return err
	}
	v := x.store.of(r)
	if err := v.trashed(r.Context(), id); err != nil {
		return err
	}
	item, err := v.s.Restore(r.Context(), id)
	if err != nil {
		return err
	}
	return sendDocument(w, http.StatusOK, record.OfRestored(item))
}

// checked is the last line of a check.
type checked struct {
	Record   string         `json:"record"`
	Contexts int            `json:"contexts"`
	Messages int64          `json:"messages"`
	Findings int64          `json:"findings"`
	ByKind   map[string]int `json:"by_kind"`
}

// check sends findings as JSON Lines, as it finds them, and a summary at the end.
func (x *Server) check(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	o := ctxdir.CheckOptions{ReadData: p.yes("read_data")}
	var err error
	v, nothing := x.store.of(r), false
	if o.Contexts, err = v.contextsOf(r.Context(), p); err == nil {
		o.Contexts, nothing, err = v.among(r.Context(), o.Contexts, "*")
	}
	if err != nil {
		return err
	}
	o.All = len(o.Contexts) == 0
	if err := p.done(); err != nil {
		return err
	}
	end := checked{Record: "summary", ByKind: map[string]int{}}
	o.Progress = func(p ctxdir.CheckProgress) { end.Contexts, end.Messages = p.Contexts, p.Messages }
	w.Header().Set("Content-Type", ndjson)
	out := bufio.NewWriterSize(w, flushed)
	findings := v.s.Check(r.Context(), o)
	if nothing {
		findings = func(func(ctxdir.Finding, error) bool) {}
	}
	for f, err := range findings {
		if err != nil {
			return err
		}
		if v.limited && !slices.Contains(o.Contexts, f.Context) {
			continue
		}
		line := record.OfFinding(f)
		line.Record = "finding"
		if err := writeLine(out, line); err != nil {
			return err
		}
		end.Findings++
		end.ByKind[line.Kind]++
	}
	if err := writeLine(out, end); err != nil {
		return err
	}
	return out.Flush()
}
