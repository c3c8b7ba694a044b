package api

import (
	"context"
	"net/http"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/search"
)

type fileList struct {
	Files  []record.FileRow `json:"files"`
	Next   string           `json:"next,omitempty"`
	Behind int64            `json:"behind"` // commits that the index does not have yet
}

// fileQueryOf reads the conditions of a list of files, or of paths.
func (v view) fileQueryOf(ctx context.Context, p *parameters) (q search.FileQuery, nothing bool, err error) {
	q.Query, nothing, err = v.conditionsOf(ctx, p)
	q.Limit = p.limit(listed, maxListed)
	q.Access, q.Type = p.text("access"), p.text("media")
	if q.Access != "" {
		oneOf(p, "access", search.Attached, search.Read, search.Written)
	}
	if p.has("is_text") {
		is := p.yes("is_text")
		q.IsText = &is
	}
	p.known = append(p.known, "is_text")
	return q, nothing, err
}

// listFiles lists the files attached to messages, and those that tools read or write, the newest first.
func (x *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	q, nothing, err := x.store.of(r).fileQueryOf(r.Context(), p)
	if err != nil {
		return err
	}
	q.Newest = !p.yes("all")
	q.Bookkeeping = q.Bookkeeping || !q.Newest
	if err := p.done(); err != nil {
		return err
	}
	if nothing {
		return sendDocument(w, http.StatusOK, fileList{Files: []record.FileRow{}})
	}
	index, behind, err := x.index.current(r.Context(), q.Contexts...)
	if err != nil {
		return err
	}
	all := fileList{Files: []record.FileRow{}, Behind: behind}
	for row, err := range index.Files(r.Context(), q) {
		if err != nil {
			return err
		}
		all.Files = append(all.Files, record.OfFileRow(&row))
		all.Next = row.Cursor
	}
	if len(all.Files) < q.Limit {
		all.Next = ""
	}
	return sendDocument(w, http.StatusOK, all)
}

type pathList struct {
	Paths  []record.PathCount `json:"paths"`
	Behind int64              `json:"behind"` // commits that the index does not have yet
}

// countPaths lists the paths that messages touch, the most often touched first.
func (x *Server) countPaths(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	q, nothing, err := x.store.of(r).fileQueryOf(r.Context(), p)
	if err != nil {
		return err
	}
	if err := p.done(); err != nil {
		return err
	}
	if nothing {
		return sendDocument(w, http.StatusOK, pathList{Paths: []record.PathCount{}})
	}
	index, behind, err := x.index.current(r.Context(), q.Contexts...)
	if err != nil {
		return err
	}
	counts, err := index.CountPaths(r.Context(), q)
	if err != nil {
		return err
	}
	all := pathList{Paths: []record.PathCount{}, Behind: behind}
	for _, c := range counts {
		all.Paths = append(all.Paths, record.OfPathCount(c))
	}
	return sendDocument(w, http.StatusOK, all)
}

type sizesDocument struct {
	record.Size
	Branches []record.Size `json:"branches"`
}

// getSizes sends the sizes of a context and of its branches, as the index has them.
func (x *Server) getSizes(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).done(); err != nil {
		return err
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		branches, err := c.Branches(r.Context())
		if err != nil {
			return err
		}
		blobs, err := c.Admin().BlobBytes(r.Context())
		if err != nil {
			return err
		}
		d := sizesDocument{record.OfSize(c.Summary()), []record.Size{}}
		d.BlobBytes = &blobs
		for _, b := range branches {
			d.Branches = append(d.Branches, record.OfBranchSize(c, b))
		}
		return sendDocument(w, http.StatusOK, d)
	})
}
