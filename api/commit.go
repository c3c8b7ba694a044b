package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// commit is several changes of a context that become one commit: after a crash, all of them are there or none.
type commit struct {
	Sequence *uint64  `json:"sequence"` // only if this is the number of the newest commit
	Changes  []change `json:"changes"`
}

// change is one change. Op says which, and which members it takes.
type change struct {
	Op       string            `json:"op"`       // append, replace, fork, new_branch, rewind, rename, switch, remove_branch or update
	Branch   string            `json:"branch"`   // empty for the active one, but for new_branch and fork its name
	Messages []json.RawMessage `json:"messages"` // of append: as in the envelopes of an append
	ID       *uuid.UUID        `json:"id"`       // of replace
	Message  json.RawMessage   `json:"message"`  // of replace
	Shared   bool              `json:"shared"`   // of replace
	From     string            `json:"from"`     // of fork; empty for the active branch
	At       *int64            `json:"at"`       // of fork
	To       *int64            `json:"to"`       // of rewind
	Name     string            `json:"name"`     // of rename
	Update   *contextChange    `json:"update"`   // of update
}

type committed struct {
	Sequence uint64     `json:"sequence"`
	Appended []appended `json:"appended"`
}

func (x *Server) commitChanges(w http.ResponseWriter, r *http.Request) error {
	var all commit
	if err := readDocument(r, &all); err != nil {
		return err
	}
	if len(all.Changes) == 0 {
		return invalid(`"changes" is empty`)
	}
	apply := make([]func(tx *ctxdir.Tx) error, len(all.Changes))
	branches := []string{} // of each appended message
	for i := range all.Changes {
		var err error
		if apply[i], err = all.Changes[i].prepare(); err != nil {
			return invalid("change %d: %v", i, err)
		}
		if u := all.Changes[i].Update; u != nil {
			if err := x.store.of(r).mayLabel(u.Labels); err != nil {
				return err
			}
		}
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		result, err := c.Commit(r.Context(), func(tx *ctxdir.Tx) error {
			branches = branches[:0]
			for i, f := range apply {
				ch := &all.Changes[i]
				if ch.Branch == "" && ch.Op != "update" {
					ch.Branch = tx.Metadata().ActiveBranch
				}
				for range ch.Messages {
					branches = append(branches, ch.Branch)
				}
				if err := f(tx); err != nil {
					return err
				}
			}
			return nil
		}, ctxdir.WriteOptions{Sequence: all.Sequence})
		if err != nil {
			return err
		}
		done := committed{Sequence: result.Sequence, Appended: []appended{}}
		for i, a := range result.Appended {
			done.Appended = append(done.Appended, appended{"appended", c.ID().String(), branches[i], a.ID.String(), a.Position, a.Existed})
		}
		w.Header().Set("ETag", etag(done.Sequence))
		return sendDocument(w, http.StatusOK, done)
	})
}

// prepare parses a change before the commit begins.
func (ch *change) prepare() (func(tx *ctxdir.Tx) error, error) {
	switch ch.Op {
	case "append":
		return ch.prepareAppend()
	case "replace":
		if ch.ID == nil {
			return nil, errors.New(`"id" is missing`)
		}
		d, err := draftOf(ch.Message)
		o := ctxdir.WriteOptions{Shared: ch.Shared}
		return func(tx *ctxdir.Tx) error { return tx.Replace(ch.Branch, *ch.ID, d, o) }, err
	case "fork":
		return ch.fork, nil
	case "new_branch":
		return func(tx *ctxdir.Tx) error { return tx.NewBranch(ch.Branch) }, nil
	case "rewind":
		if ch.To == nil {
			return nil, errors.New(`"to" is missing`)
		}
		return func(tx *ctxdir.Tx) error { return tx.Rewind(ch.Branch, *ch.To) }, nil
	case "rename":
		return func(tx *ctxdir.Tx) error { return tx.RenameBranch(ch.Branch, ch.Name) }, nil
	case "switch":
		return func(tx *ctxdir.Tx) error { return tx.Switch(ch.Branch) }, nil
	case "remove_branch":
		return func(tx *ctxdir.Tx) error { return tx.RemoveBranch(ch.Branch) }, nil
	case "update":
		if ch.Update == nil {
			return nil, errors.New(`"update" is missing`)
		}
		return ch.Update.apply, nil
	}
	return nil, errors.New(`unknown "op"`)
}

func (ch *change) prepareAppend() (func(tx *ctxdir.Tx) error, error) {
	if len(ch.Messages) == 0 {
		return nil, errors.New(`"messages" is empty`)
	}
	drafts := make([]ctxdir.Draft, len(ch.Messages))
	for i, m := range ch.Messages {
		var err error
		if drafts[i], err = envelopeOf(m); err != nil {
			return nil, err
		}
	}
	return func(tx *ctxdir.Tx) error { return tx.Append(ch.Branch, drafts...) }, nil
}

func (ch *change) fork(tx *ctxdir.Tx) error {
	from := ch.From
	if from == "" {
		from = tx.Metadata().ActiveBranch
	}
	at := ch.At
	if at == nil {
		n, err := tx.Len(from)
		if err != nil {
			return err
		}
		at = &n
	}
	return tx.Fork(ch.Branch, from, *at)
}
