package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
)

type branchList struct {
	Branches []record.Branch `json:"branches"`
}

func (x *Server) listBranches(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	if err := p.done(); err != nil {
		return err
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		all, err := c.Branches(r.Context())
		if err != nil {
			return err
		}
		list := branchList{Branches: []record.Branch{}}
		for _, b := range all {
			list.Branches = append(list.Branches, record.OfBranch(b))
		}
		return sendDocument(w, http.StatusOK, list)
	})
}

// branchInfo describes one branch.
func branchInfo(ctx context.Context, c *ctxdir.Context, name string) (ctxdir.BranchInfo, error) {
	all, err := c.Branches(ctx)
	if err != nil {
		return ctxdir.BranchInfo{}, err
	}
	i := slices.IndexFunc(all, func(b ctxdir.BranchInfo) bool { return b.Name == name })
	if i < 0 {
		return ctxdir.BranchInfo{}, &ctxdir.Error{Op: "read", Context: c.ID(), Branch: name, Err: ctxdir.ErrNotExist}
	}
	return all[i], nil
}

func sendBranch(w http.ResponseWriter, r *http.Request, status int, c *ctxdir.Context, name string) error {
	info, err := branchInfo(r.Context(), c, name)
	if err != nil {
		return err
	}
	return sendDocument(w, status, record.OfBranch(info))
}

func (x *Server) getBranch(w http.ResponseWriter, r *http.Request) error {
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error { return sendBranch(w, r, http.StatusOK, c, b.Name()) })
}

// newBranch is a branch to be created: a fork of another one, or an empty branch. At most one of At and After counts.
type newBranch struct {
	Name  string     `json:"name"`
	From  string     `json:"from"`  // the branch to fork; empty for the active one
	At    *int64     `json:"at"`    // the fork begins with this many messages of it
	After *uuid.UUID `json:"after"` // or with the messages up to this one
	Empty bool       `json:"empty"` // or without messages
}

// createBranch makes a branch. With an Idempotency-Key, the same request again finds the branch of the first.
func (x *Server) createBranch(w http.ResponseWriter, r *http.Request) error {
	var n newBranch
	if err := readDocument(r, &n); err != nil {
		return err
	}
	if n.At != nil && n.After != nil || n.Empty && (n.At != nil || n.After != nil || n.From != "") {
		return invalid(`"at", "after" and "empty" cannot be used together`)
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		status := http.StatusCreated
		err := n.create(r.Context(), c)
		if errors.Is(err, ctxdir.ErrExist) && key != "" && n.exists(r.Context(), c) {
			status, err = http.StatusOK, nil
		}
		if err != nil {
			return err
		}
		w.Header().Set("Location", "/v1/contexts/"+c.ID().String()+"/branches/"+url.PathEscape(n.Name))
		return sendBranch(w, r, status, c, n.Name)
	})
}

func (n *newBranch) create(ctx context.Context, c *ctxdir.Context) error {
	if n.Empty {
		_, err := c.NewBranch(ctx, n.Name)
		return err
	}
	from, at, err := n.point(ctx, c)
	if err != nil {
		return err
	}
	_, err = from.Fork(ctx, n.Name, at)
	return err
}

// point is where the fork begins.
func (n *newBranch) point(ctx context.Context, c *ctxdir.Context) (from *ctxdir.Branch, at int64, err error) {
	from = c.Active()
	if n.From != "" {
		if from, err = c.Branch(n.From); err != nil {
			return nil, 0, err
		}
	}
	switch {
	case n.At != nil:
		return from, *n.At, nil
	case n.After != nil:
		m, err := from.Message(ctx, *n.After)
		if err != nil {
			return nil, 0, err
		}
		return from, m.Position + 1, nil
	}
	at, err = from.Len(ctx)
	return from, at, err
}

// exists reports whether the context has the branch that a first request made.
func (n *newBranch) exists(ctx context.Context, c *ctxdir.Context) bool {
	info, err := branchInfo(ctx, c, n.Name)
	if err != nil {
		return false
	}
	if n.Empty {
		return info.Parent == ""
	}
	from, at, err := n.point(ctx, c)
	return err == nil && info.Base == at && (info.Parent == from.Name() || n.At == nil && n.After == nil)
}

type branchRename struct {
	Name string `json:"name"`
}

func (x *Server) renameBranch(w http.ResponseWriter, r *http.Request) error {
	var to branchRename
	if err := readDocument(r, &to); err != nil {
		return err
	}
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		if _, err := b.Rename(r.Context(), to.Name); err != nil {
			return err
		}
		return sendBranch(w, r, http.StatusOK, c, to.Name)
	})
}

type branchRewind struct {
	To *int64 `json:"to"` // the number of messages that the branch keeps
}

func (x *Server) rewindBranch(w http.ResponseWriter, r *http.Request) error {
	var rewind branchRewind
	if err := readDocument(r, &rewind); err != nil {
		return err
	}
	if rewind.To == nil {
		return invalid(`"to" is missing`)
	}
	sequence, err := matching(r)
	if err != nil {
		return err
	}
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		_, err := c.Commit(r.Context(), func(tx *ctxdir.Tx) error { return tx.Rewind(b.Name(), *rewind.To) },
			ctxdir.WriteOptions{Sequence: sequence})
		if errors.Is(err, ctxdir.ErrPosition) && sequence != nil {
			return problem(codePrecondition, "the context has newer commits than the one in If-Match, or fewer messages")
		}
		if err != nil {
			return err
		}
		return sendBranch(w, r, http.StatusOK, c, b.Name())
	})
}

func (x *Server) switchBranch(w http.ResponseWriter, r *http.Request) error {
	if err := noBody(r); err != nil {
		return err
	}
	return x.withBranch(r, func(c *ctxdir.Context, b *ctxdir.Branch) error {
		if err := c.Switch(r.Context(), b.Name()); err != nil {
			return err
		}
		return sendBranch(w, r, http.StatusOK, c, b.Name())
	})
}

func (x *Server) removeBranch(w http.ResponseWriter, r *http.Request) error {
	return x.withBranch(r, func(_ *ctxdir.Context, b *ctxdir.Branch) error {
		if err := b.Remove(r.Context()); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}
