package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

const (
	// listed and maxListed are the default and the largest number of contexts in a page.
	listed    = 200
	maxListed = 1000
)

type contextList struct {
	Contexts []listedContext `json:"contexts"`
	Next     string          `json:"next,omitempty"` // the cursor of the next page
}

type listedContext struct {
	record.Context
	Outline *contextOutline `json:"outline,omitempty"`
}

// contextOutline is what the search index knows of the active branch.
type contextOutline struct {
	Added   int64  `json:"added"`
	Removed int64  `json:"removed"`
	Answer  string `json:"answer"`
}

func (x *Server) listContexts(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	limit := p.limit(listed, maxListed)
	o := ctxdir.ListOptions{
		Labels: labelsOf(p), Kind: p.text("kind"), Title: p.text("title"), Model: p.text("model"), Tool: p.text("tool"),
		Since: p.time("since"), Until: p.time("until"),
		Order: oneOf(p, "sort", ctxdir.OrderUpdated, ctxdir.OrderCreated, ctxdir.OrderSize, ctxdir.OrderTitle), Reverse: p.yes("reverse"),
		Cursor: p.text("cursor"), Limit: limit + 1,
	}
	outlined := p.yes("outline")
	if err := p.done(); err != nil {
		return err
	}
	list := contextList{Contexts: []listedContext{}}
	last := ""
	for s, err := range x.store.of(r).list(r.Context(), o) {
		if err != nil {
			return err
		}
		if len(list.Contexts) == limit {
			list.Next = last
			break
		}
		list.Contexts = append(list.Contexts, listedContext{Context: record.OfContext(s)})
		last = s.Cursor
	}
	if outlined {
		if err := x.addOutlines(r.Context(), list.Contexts); err != nil {
			return err
		}
	}
	return sendDocument(w, http.StatusOK, list)
}

// addOutlines adds what the search index knows of contexts. It leaves out those that it does not have yet.
func (x *Server) addOutlines(ctx context.Context, all []listedContext) error {
	if len(all) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(all))
	for i := range all {
		id, err := uuid.Parse(all[i].ID)
		if err != nil {
			return err
		}
		ids[i] = id
	}
	index, _, err := x.index.current(ctx, ids...)
	if err != nil {
		return err
	}
	for i := range all {
		c := &all[i]
		is, err := index.Brief(ctx, ids[i], c.ActiveBranch)
		switch {
		case errors.Is(err, ctxdir.ErrNotExist):
		case err != nil:
			return err
		default:
			c.Outline = &contextOutline{is.Added, is.Removed, is.Answer}
		}
	}
	return nil
}

// contextDocument is a context with its metadata.
type contextDocument struct {
	record.Context
	ParentID string          `json:"parent_id,omitempty"`
	Config   json.RawMessage `json:"config,omitempty"`
	State    json.RawMessage `json:"state,omitempty"`
	Session  string          `json:"session,omitempty"` // the id by which the tool of an imported context resumes it
	Sequence uint64          `json:"sequence"`          // of the newest commit
}

func documentOf(c *ctxdir.Context) contextDocument {
	sum, m := c.Summary(), c.Metadata()
	d := contextDocument{Context: record.OfContext(sum), Config: m.Config, State: m.State, Sequence: sum.Sequence}
	if m.ParentID != uuid.Nil {
		d.ParentID = m.ParentID.String()
	}
	var imported struct {
		Session string `json:"session"`
	}
	if json.Unmarshal(transcript.ObjectOf(m.Extra)["import"], &imported) == nil {
		d.Session = imported.Session
	}
	return d
}

// sendContext sends a context. Its ETag is the number of its newest commit, so If-Match on a change means: only if
// nothing was committed since.
func sendContext(w http.ResponseWriter, status int, c *ctxdir.Context) error {
	d := documentOf(c)
	w.Header().Set("ETag", etag(d.Sequence))
	return sendDocument(w, status, d)
}

func etag(sequence uint64) string { return `"` + strconv.FormatUint(sequence, 10) + `"` }

func (x *Server) getContext(w http.ResponseWriter, r *http.Request) error {
	return x.withContext(r, func(c *ctxdir.Context) error {
		if r.Header.Get("If-None-Match") == etag(c.Summary().Sequence) {
			w.Header().Set("ETag", r.Header.Get("If-None-Match"))
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		return sendContext(w, http.StatusOK, c)
	})
}

// newContext is a context to be created. Every member may be missing.
type newContext struct {
	ID           *uuid.UUID        `json:"id"`
	ParentID     *uuid.UUID        `json:"parent_id"`
	Title        string            `json:"title"`
	Labels       map[string]string `json:"labels"`
	Kind         string            `json:"kind"`
	ExternalID   string            `json:"external_id"`
	Config       json.RawMessage   `json:"config"`
	State        json.RawMessage   `json:"state"`
	SystemPrompt string            `json:"system_prompt"`
}

func (n *newContext) metadata() ctxdir.Metadata {
	m := ctxdir.Metadata{
		Title: n.Title, Labels: n.Labels, Kind: n.Kind, ExternalID: n.ExternalID, Config: n.Config, State: n.State,
	}
	if n.ID != nil {
		m.ID = *n.ID
	}
	if n.ParentID != nil {
		m.ParentID = *n.ParentID
	}
	if n.SystemPrompt != "" {
		m.Branches = []ctxdir.BranchMetadata{{Name: "main", SystemPrompt: record.Encode(n.SystemPrompt)}}
	}
	return m
}

// createContext creates a context. A retry is safe with an id, an external id and ?open=true, or an Idempotency-Key:
// the id of the context is then derived from the key.
func (x *Server) createContext(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	open := p.yes("open")
	if err := p.done(); err != nil {
		return err
	}
	var n newContext
	if err := readDocument(r, &n); err != nil {
		return err
	}
	m := n.metadata()
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	v := x.store.of(r)
	if err := v.label(&m); err != nil {
		return err
	}
	if key != "" && m.ID == uuid.Nil && m.ExternalID == "" {
		m.ID = v.keyed(&m, key)
	}
	var c *ctxdir.Context
	status := http.StatusCreated
	switch {
	case open && m.ExternalID == "":
		return invalid("open: the context needs an external_id")
	case open:
		status = http.StatusOK
		c, err = v.s.OpenOrCreate(r.Context(), m)
	default:
		c, err = v.s.Create(r.Context(), m)
		if errors.Is(err, ctxdir.ErrExist) && key != "" {
			status = http.StatusOK // the first request created it
			c, err = v.s.Open(r.Context(), m.ID)
		}
	}
	if err != nil {
		return err
	}
	defer c.Close()
	w.Header().Set("Location", "/v1/contexts/"+c.ID().String())
	return sendContext(w, status, c)
}

// maxKey bounds an Idempotency-Key.
const maxKey = 255

// idempotencyKey returns the header Idempotency-Key; empty for none.
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return "", invalid("Idempotency-Key: exceeds the limit of %d characters", maxKey)
	}
	return key, nil
}

// contextChange is a change of a context: members that are missing stay. In labels and config, null removes a member.
type contextChange struct {
	Title        *string            `json:"title"`
	Labels       map[string]*string `json:"labels"`
	Config       json.RawMessage    `json:"config"`
	State        *json.RawMessage   `json:"state"`
	ActiveBranch string             `json:"active_branch"`
}

func (x *Server) changeContext(w http.ResponseWriter, r *http.Request) error {
	var change contextChange
	if err := readDocument(r, &change); err != nil {
		return err
	}
	sequence, err := matching(r)
	if err == nil {
		err = x.store.of(r).mayLabel(change.Labels)
	}
	if err != nil {
		return err
	}
	return x.withContext(r, func(c *ctxdir.Context) error {
		_, err := c.Commit(r.Context(), change.apply, ctxdir.WriteOptions{Sequence: sequence})
		if errors.Is(err, ctxdir.ErrPosition) && sequence != nil {
			return problem(codePrecondition, "the context has newer commits than the one in If-Match")
		}
		if err != nil {
			return err
		}
		return sendContext(w, http.StatusOK, c)
	})
}

// matching returns the sequence number in the header If-Match.
func matching(r *http.Request) (*uint64, error) {
	text := r.Header.Get("If-Match")
	if text == "" || text == "*" {
		return nil, nil
	}
	sequence, err := strconv.ParseUint(strings.Trim(text, `"`), 10, 64)
	if err != nil || text != etag(sequence) {
		return nil, problem(codePrecondition, "If-Match: the context never had the ETag %q", short(text))
	}
	return &sequence, nil
}

func (change *contextChange) apply(tx *ctxdir.Tx) error {
	if change.ActiveBranch != "" {
		if err := tx.Switch(change.ActiveBranch); err != nil {
			return err
		}
	}
	if change.Title == nil && change.Labels == nil && change.Config == nil && change.State == nil {
		return nil
	}
	return tx.Update(func(m *ctxdir.Metadata) (err error) {
		if change.Title != nil {
			m.Title = *change.Title
		}
		labels := maps.Clone(m.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		for key, value := range change.Labels {
			if value == nil {
				delete(labels, key)
			} else {
				labels[key] = *value
			}
		}
		m.Labels = labels
		if change.State != nil {
			m.State = *change.State
		}
		m.Config, err = mergedConfig(m.Config, change.Config)
		return err
	})
}

// mergedConfig applies a merge patch of RFC 7396 to the members of a configuration. Members that the patch does not
// have keep their bytes.
func mergedConfig(config, patch json.RawMessage) (json.RawMessage, error) {
	if patch == nil {
		return config, nil
	}
	var changes, members map[string]json.RawMessage
	if err := json.Unmarshal(patch, &changes); err != nil || changes == nil {
		return nil, invalid("config: expected an object")
	}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &members); err != nil {
			return nil, fmt.Errorf("%w: the stored config is not an object", ctxdir.ErrDamaged)
		}
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	for key, value := range changes {
		if string(value) == "null" {
			delete(members, key)
		} else {
			members[key] = value
		}
	}
	merged := []byte{'{'}
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			merged = append(merged, ',')
		}
		merged = append(append(append(merged, record.Encode(key)...), ':'), members[key]...)
	}
	return append(merged, '}'), nil
}

func (x *Server) removeContext(w http.ResponseWriter, r *http.Request) error {
	id, err := x.contextOf(r)
	if err != nil {
		return err
	}
	v := x.store.of(r)
	item, err := v.s.Remove(r.Context(), id)
	if err != nil {
		return err
	}
	after, err := record.Grace(v.s)
	if err != nil {
		return err
	}
	return sendDocument(w, http.StatusOK, record.OfTrashed(item, after))
}
