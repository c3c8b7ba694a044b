package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// fakeStore keeps contexts in memory and is strict about what a real store would refuse.
type fakeStore struct {
	contexts map[uuid.UUID]*fakeContext
	chunk    int // most messages that Messages gives
	fail     int // the operation, counted from 1, that fails; 0 for none
	ops      int
	log      []string
}

type fakeContext struct {
	store    *fakeStore
	info     Info
	lines    map[uuid.UUID][]Record // own messages of a line
	branches map[string]*fakeBranch
	order    []string
	active   string
	open     bool
}

type fakeBranch struct {
	spans []Span // the last one's To is that of the branch
	attrs map[string]json.RawMessage
}

var errInjected = errors.New("injected")

func newFakeStore() *fakeStore { return &fakeStore{contexts: map[uuid.UUID]*fakeContext{}, chunk: 3} }

func (s *fakeStore) operation() error {
	if s.ops++; s.ops == s.fail {
		return errInjected
	}
	return nil
}

func (s *fakeStore) Open(_ context.Context, info Info) (Conversation, error) {
	if info.ID == uuid.Nil || info.Format == "" {
		return nil, fmt.Errorf("open %+v", info)
	}
	if info.Extra != nil && (len(info.Extra) > MaxExtra || !json.Valid(info.Extra)) {
		return nil, fmt.Errorf("extra %.100s", info.Extra)
	}
	c := s.contexts[info.ID]
	if c == nil {
		c = &fakeContext{store: s, info: info, lines: map[uuid.UUID][]Record{}, branches: map[string]*fakeBranch{}}
		c.add(Main, nil, nil)
		c.active = Main
		s.contexts[info.ID] = c
	}
	if c.open {
		return nil, errors.New("opened twice")
	}
	c.open = true
	return c, nil
}

// Describe is like that of the engine, without the rule that keeps what people changed.
func (c *fakeContext) Describe(_ context.Context, info Info, _ bool) error {
	if err := c.store.operation(); err != nil {
		return err
	}
	older := info.Replaces && info.StateAt.Before(c.info.StateAt)
	if info.Title != "" && !older {
		c.info.Title, c.info.TitleFrom = info.Title, info.TitleFrom
	}
	if c.info.Model == "" {
		c.info.Model = info.Model
	}
	c.info.CreatedAt = earliest(c.info.CreatedAt, info.CreatedAt)
	if info.UpdatedAt.After(c.info.UpdatedAt) {
		c.info.UpdatedAt = info.UpdatedAt
	}
	for key, value := range info.Labels {
		c.info.label(key, value)
	}
	if info.Replaces && !older {
		c.info.StateAt, c.info.Extra = info.StateAt, info.Extra
	}
	return nil
}

func (c *fakeContext) Replace(_ context.Context, branch string, recs []Record) error {
	if err := c.store.operation(); err != nil {
		return err
	}
	for _, r := range recs {
		found := false
		for _, span := range c.branches[branch].spans {
			for i := range c.lines[span.Line] {
				if c.lines[span.Line][i].ID == r.ID {
					found = true
					c.lines[span.Line][i] = r
				}
			}
		}
		if !found {
			return fmt.Errorf("replace %s on %q", r.ID, branch)
		}
	}
	c.store.log = append(c.store.log, fmt.Sprintf("replace %d on %s", len(recs), branch))
	return nil
}

func (c *fakeContext) Times() (stateAt, updatedAt time.Time) { return c.info.StateAt, c.info.UpdatedAt }

func (c *fakeContext) Find(_ context.Context, id uuid.UUID) (branch string, at int64, ok bool, err error) {
	for _, name := range c.order {
		base, recs := c.own(name)
		for i, r := range recs {
			if r.ID == id {
				return name, base + int64(i), true, nil
			}
		}
	}
	return "", 0, false, nil
}

func (c *fakeContext) add(name string, spans []Span, attrs map[string]json.RawMessage) {
	to := int64(0)
	if len(spans) > 0 {
		to = spans[len(spans)-1].To
	}
	c.branches[name] = &fakeBranch{append(slices.Clone(spans), Span{uuid.New(), to}), attrs}
	c.order = append(c.order, name)
}

func (c *fakeContext) Branches(context.Context) ([]Branch, error) {
	var out []Branch
	for _, name := range c.order {
		out = append(out, Branch{name, slices.Clone(c.branches[name].spans)})
	}
	return out, nil
}

func (b *fakeBranch) len() int64 { return b.spans[len(b.spans)-1].To }

// all gives the messages a branch shows.
func (c *fakeContext) all(name string) (out []Record) {
	from := int64(0)
	for _, s := range c.branches[name].spans {
		base := int64(0)
		for _, b := range c.branches {
			for i := range b.spans {
				if b.spans[i].Line == s.Line && i > 0 {
					base = b.spans[i-1].To
				}
			}
		}
		out = append(out, c.lines[s.Line][from-base:s.To-base]...)
		from = s.To
	}
	return out
}

func (c *fakeContext) Messages(_ context.Context, branch string, from, to int64) ([]Record, error) {
	b := c.branches[branch]
	if b == nil || from < 0 || from >= to || to > b.len() {
		return nil, fmt.Errorf("messages of %q from %d to %d", branch, from, to)
	}
	to = min(to, from+int64(c.store.chunk))
	return slices.Clone(c.all(branch)[from:to]), nil
}

func (c *fakeContext) Fork(_ context.Context, name, from string, at int64, attrs map[string]json.RawMessage) error {
	if err := c.store.operation(); err != nil {
		return err
	}
	for have := range c.branches {
		if strings.EqualFold(have, name) {
			return fmt.Errorf("branch %q exists", have)
		}
	}
	if name == "" || len(name) > 200 {
		return fmt.Errorf("name %q", name)
	}
	var spans []Span
	if from != "" {
		b := c.branches[from]
		if b == nil || at < 1 || at > b.len() {
			return fmt.Errorf("fork %q of %q at %d", name, from, at)
		}
		for _, s := range b.spans {
			spans = append(spans, Span{s.Line, min(s.To, at)})
			if at <= s.To {
				break
			}
		}
	} else if at != 0 {
		return fmt.Errorf("an empty branch that begins at %d", at)
	}
	c.add(name, spans, attrs)
	c.store.log = append(c.store.log, fmt.Sprintf("fork %s", name))
	return nil
}

func (c *fakeContext) Append(_ context.Context, branch string, at int64, recs []Record) error {
	if err := c.store.operation(); err != nil {
		return err
	}
	b := c.branches[branch]
	if b == nil || at != b.len() || len(recs) == 0 || len(recs) > batchRecords {
		return fmt.Errorf("append %d to %q at %d", len(recs), branch, at)
	}
	seen := map[uuid.UUID]bool{}
	for _, r := range c.all(branch) {
		seen[r.ID] = true
	}
	own := &b.spans[len(b.spans)-1]
	for _, r := range recs {
		if r.ID == uuid.Nil || seen[r.ID] {
			return fmt.Errorf("append to %q: id %s is there or nil", branch, r.ID)
		}
		if !json.Valid(r.Body) || r.Body[0] != '{' {
			return fmt.Errorf("append to %q: body %.80s", branch, r.Body)
		}
		seen[r.ID] = true
		r.Body = bytes.Clone(r.Body)
		c.lines[own.Line] = append(c.lines[own.Line], r)
		own.To++
	}
	c.store.log = append(c.store.log, fmt.Sprintf("append %d to %s", len(recs), branch))
	return nil
}

func (c *fakeContext) SetActive(_ context.Context, branch string) error {
	if c.branches[branch] == nil {
		return fmt.Errorf("active %q", branch)
	}
	c.active = branch
	return nil
}

func (c *fakeContext) Close() error {
	if !c.open {
		return errors.New("closed twice")
	}
	c.open = false
	return nil
}

// own are the messages of a branch's own line, and how many it inherits.
func (c *fakeContext) own(name string) (base int64, recs []Record) {
	spans := c.branches[name].spans
	if len(spans) > 1 {
		base = spans[len(spans)-2].To
	}
	return base, c.lines[spans[len(spans)-1].Line]
}

// dump is all that there is in a store, in a form that two stores can be compared in.
func (s *fakeStore) dump() string {
	var b strings.Builder
	for _, id := range slices.SortedFunc(maps.Keys(s.contexts), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		c := s.contexts[id]
		fmt.Fprintf(&b, "context %s %s %q %q %q %v %v %v %s\nactive %s\n", id, c.info.Format, c.info.Session, c.info.Title,
			c.info.Model, c.info.CreatedAt, c.info.UpdatedAt, c.info.Labels, c.info.Extra, c.active)
		for _, name := range slices.Sorted(maps.Keys(c.branches)) {
			br := c.branches[name]
			base, _ := c.own(name)
			fmt.Fprintf(&b, "branch %s base %d attrs %s\n", name, base, br.attrs["sidechain"])
			for i, r := range c.all(name) {
				fmt.Fprintf(&b, "%4d %s %q %s/%s %v %s\n", i, r.ID, r.OriginID, r.Role, r.Type, r.CreatedAt, r.Body)
			}
		}
	}
	return b.String()
}

// only is the one context of a store.
func (s *fakeStore) only(t testing.TB) *fakeContext {
	t.Helper()
	if len(s.contexts) != 1 {
		t.Fatalf("%d contexts, wanted 1", len(s.contexts))
	}
	for _, c := range s.contexts {
		return c
	}
	return nil
}

// each calls f for every message stored, once.
func (s *fakeStore) each(f func(Record)) {
	for _, c := range s.contexts {
		for _, name := range c.order {
			_, recs := c.own(name)
			for _, r := range recs {
				f(r)
			}
		}
	}
}

// imported is what an import gave.
type imported struct {
	results  []Result
	errs     []error
	problems []Problem
}

func importFile(t testing.TB, s Store, path string, o Options) (out imported) {
	t.Helper()
	o.Problem = func(p Problem) { out.problems = append(out.problems, p) }
	for r, err := range Import(context.Background(), s, path, o) {
		if err != nil {
			out.errs = append(out.errs, err)
			continue
		}
		out.results = append(out.results, r)
	}
	return out
}
