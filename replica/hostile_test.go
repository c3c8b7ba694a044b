package replica

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// liar is a peer that changes what another one says.
type liar struct {
	Peer
	states   func([]State) []State
	head     func(*Head)
	rows     func([]Row) []Row
	messages func([]Message) []Message
	payload  func(sum string, r io.Reader) io.Reader
}

func (l *liar) Contexts(ctx context.Context, known map[uuid.UUID]string) ([]State, error) {
	all, err := l.Peer.Contexts(ctx, known)
	if l.states != nil {
		all = l.states(all)
	}
	return all, err
}

func (l *liar) Heads(ctx context.Context, of []HeadRequest) ([]Head, error) {
	all, err := l.Peer.Heads(ctx, of)
	for i := range all {
		if l.head != nil {
			l.head(&all[i])
		}
	}
	return all, err
}

func (l *liar) Rows(ctx context.Context, of []Range) ([][]Row, error) {
	all, err := l.Peer.Rows(ctx, of)
	for i := range all {
		if l.rows != nil {
			all[i] = l.rows(all[i])
		}
	}
	return all, err
}

func (l *liar) Read(ctx context.Context, of []Range, size int64) ([]Message, error) {
	all, err := l.Peer.Read(ctx, of, size)
	if l.messages != nil {
		all = l.messages(all)
	}
	return all, err
}

func (l *liar) Get(ctx context.Context, of []PayloadOf, f func(string, int64, io.Reader) error) error {
	return l.Peer.Get(ctx, of, func(sum string, size int64, r io.Reader) error {
		if l.payload != nil {
			r = l.payload(sum, r)
		}
		return f(sum, size, r)
	})
}

// TestLiar: a peer that lies about one thing after the other changes nothing but contexts: the store stays whole, and what it
// had is still there.
func TestLiar(t *testing.T) {
	far := int64(1) << 60
	lies := map[string]*liar{
		"a context that is not there": {states: func(s []State) []State { return append(s, State{ID: uuid.New(), Commit: "1-1"}) }},
		"the same context twice":      {states: func(s []State) []State { return append(s, s...) }},
		"everything was removed": {states: func(s []State) []State {
			for i := range s {
				s[i] = State{ID: s[i].ID, Removed: true}
			}
			return s
		}},
		"no branches":            {head: func(h *Head) { h.Branches = nil }},
		"a branch without lines": {head: func(h *Head) { h.Branches[0].Lines = nil }},
		"a branch that is too long": {head: func(h *Head) {
			h.Branches[0].Lines[0].End = far
		}},
		"a branch of negative length": {head: func(h *Head) { h.Branches[0].Lines[0].End = -1 }},
		"the same branch twice":       {head: func(h *Head) { h.Branches = append(h.Branches, h.Branches...) }},
		"a name that is a path":       {head: func(h *Head) { h.Branches[0].Name, h.Meta.Active = "../../../x", "../../../x" }},
		"a name of nothing":           {head: func(h *Head) { h.Branches[0].Name = "" }},
		"a name that is too long":     {head: func(h *Head) { h.Branches[0].Name = strings.Repeat("x", 100_000) }},
		"a name with a zero byte":     {head: func(h *Head) { h.Branches[0].Name = "a\x00b" }},
		"metadata that is no JSON":    {head: func(h *Head) { h.Meta.Config = json.RawMessage(`{"x"`) }},
		"a state that is no JSON":     {head: func(h *Head) { h.Meta.State = json.RawMessage(`}`) }},
		"a long label":                {head: func(h *Head) { h.Meta.Labels = map[string]string{"": strings.Repeat("x", 1<<20)} }},
		"a time in the future":        {head: func(h *Head) { h.Meta.UpdatedAt = time.Now().AddDate(1000, 0, 0) }},
		"another kind":                {head: func(h *Head) { h.Meta.Kind, h.Meta.ExternalID = "other", "id" }},
		"an error":                    {head: func(h *Head) { h.Err = errors.New("no") }},
		"other rows": {rows: func(r []Row) []Row {
			for i := range r {
				r[i].ID, r[i].Position, r[i].StoredAt = uuid.New(), far, time.Now().AddDate(1000, 0, 0)
			}
			return r
		}},
		"rows in another order": {rows: func(r []Row) []Row {
			for i := range r[:len(r)/2] {
				r[i], r[len(r)-1-i] = r[len(r)-1-i], r[i]
			}
			return r
		}},
		"no messages": {messages: func([]Message) []Message { return nil }},
		"messages of another range": {messages: func(m []Message) []Message {
			for i := range m {
				m[i].Of += 7
			}
			return m
		}},
		"messages elsewhere": {messages: func(m []Message) []Message {
			for i := range m {
				m[i].Position = far
			}
			return m
		}},
		"envelopes that are none": {messages: func(m []Message) []Message {
			for i := range m {
				m[i].Envelope = json.RawMessage(`{"ctxdir":"message/1"`)
			}
			return m
		}},
		"an envelope of another id": {messages: func(m []Message) []Message {
			for i := range m {
				m[i].ID = uuid.New()
			}
			return m
		}},
		"the same message again and again": {messages: func(m []Message) []Message {
			for i := range m {
				m[i].Envelope, m[i].ID = m[0].Envelope, m[0].ID
			}
			return m
		}},
		"payloads that are none": {messages: func(m []Message) []Message {
			for i := range m {
				m[i].Payloads = []string{strings.Repeat("0", 64)}
			}
			return m
		}},
		"another payload": {payload: func(_ string, r io.Reader) io.Reader {
			return io.MultiReader(strings.NewReader("x"), r)
		}},
		"a payload that ends early": {payload: func(_ string, r io.Reader) io.Reader { return io.LimitReader(r, 3) }},
	}
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			here, peer := newDevice(t, "here"), newDevice(t, "peer")
			own := here.create(ctxdir.Metadata{Title: "own"})
			here.append(own, "main", "mine")
			shared := here.create(ctxdir.Metadata{Title: "shared"})
			here.append(shared, "main", "one", "two")
			here.sync(peer.f, Options{})
			peer.append(shared, "main", "three", strings.Repeat("a payload ", 4000))
			other := peer.create(ctxdir.Metadata{Title: "other"})
			peer.append(other, "main", "theirs", strings.Repeat("another payload ", 4000))
			lie.Peer = peer.f
			_, _ = Sync(t.Context(), here.f, lie, Options{Host: "here"})
			for f, err := range here.s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
				if err != nil || f.Severity == ctxdir.SeverityError && f.Kind != "blob-missing" {
					t.Errorf("%+v, %v", f, err)
				}
			}
			if !strings.Contains(what, "removed") && !strings.Contains(what, "payload") {
				text := strings.Join(here.shown(), "\n")
				for _, want := range []string{"own", "mine", "one", "two"} {
					if !strings.Contains(text, `"`+want+`"`) {
						t.Errorf("%q is missing:\n%s", want, text)
					}
				}
			}
			// With the truth, everything comes in order.
			if !strings.Contains(what, "removed") {
				_, _ = Sync(t.Context(), here.f, peer.f, Options{Host: "here"})
			}
		})
	}
}
