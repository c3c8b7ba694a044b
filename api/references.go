package api

import (
	"bufio"
	"context"
	"fmt"
	"net/http"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/reference"
)

type referenceList struct {
	References []record.Reference `json:"references"`
	Problem    string             `json:"problem,omitempty"` // why some were left out
}

// referencesOf returns the references of a message: those stored with it, and, unless stored is set, those that its tool
// calls imply. Paths become relative to the project of the context, as the store states it. No file of a working tree is
// read.
func referencesOf(ctx context.Context, c *ctxdir.Context, b *ctxdir.Branch, m *ctxdir.Message, stored bool) ([]record.Reference, error) {
	if m.Unavailable != nil {
		return nil, m.Unavailable
	}
	var folders []string
	if project := c.Metadata().Labels["project"]; project != "" {
		folders = append(folders, project)
	}
	refs, err := reference.Stored(m)
	if !stored {
		refs, err = reference.Of(ctx, m, folders...)
	}
	all := make([]record.Reference, len(refs))
	for i := range refs {
		all[i] = record.OfReference(c, b.Name(), m, &refs[i])
	}
	return all, err
}

func (x *Server) listMessageReferences(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	stored := p.yes("stored")
	if err := p.done(); err != nil {
		return err
	}
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		m, err := b.Message(r.Context(), id)
		if err != nil {
			return err
		}
		if m.Unavailable != nil {
			return m.Unavailable
		}
		refs, err := referencesOf(r.Context(), c, b, m, stored)
		if r.Context().Err() != nil {
			return r.Context().Err()
		}
		return sendDocument(w, http.StatusOK, referenceList{record.List(refs), record.Problem(err)})
	})
}

// listReferences sends the references of the messages of a branch as JSON Lines, as it reads them.
func (x *Server) listReferences(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	from, to, stored := p.number("from", 0), p.number("to", ctxdir.End), p.yes("stored")
	if to < from {
		p.fail("to", "the end of the range is before its start")
	}
	if err := p.done(); err != nil {
		return err
	}
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		w.Header().Set("Content-Type", ndjson)
		out := bufio.NewWriterSize(w, flushed)
		for m, err := range b.Messages(r.Context(), from, to) {
			if err != nil {
				return err
			}
			refs, problem := referencesOf(r.Context(), c, b, m, stored)
			if r.Context().Err() != nil {
				return r.Context().Err()
			}
			for i := range refs {
				if err := writeLine(out, &refs[i]); err != nil {
					return err
				}
			}
			if problem != nil {
				problem = fmt.Errorf("message %d: %w", m.Position, problem)
				if err := writeLine(out, contextFailure{"failed", c.ID().String(), record.Problem(problem)}); err != nil {
					return err
				}
			}
		}
		return out.Flush()
	})
}
