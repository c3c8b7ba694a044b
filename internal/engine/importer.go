package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/importer"
)

// Importer returns the store in the form that package importer takes: importer.Import(ctx, s.Importer(), path, …)
// stores the history of another tool.
func (s *Store) Importer() importer.Store { return importStore{s} }

type importStore struct{ s *Store }

// Open implements [importer.Store].
func (i importStore) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	c, err := i.s.Context(ctx, info.ID)
	if errors.Is(err, ErrNotExist) {
		m := Metadata{ID: info.ID}
		fillIn(&m, info)
		c, err = i.s.Create(ctx, m)
		if errors.Is(err, ErrExist) { // another import of the same history made it
			c, err = i.s.Context(ctx, info.ID)
		}
	}
	if err != nil {
		return nil, err
	}
	if m := c.Metadata(); fillIn(m, info) {
		err = c.Update(ctx, func(m *Metadata) error {
			fillIn(m, info)
			return nil
		})
		if err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return &conversation{c}, nil
}

// fillIn copies into the metadata what a history says about itself and the metadata does not say yet. It reports
// whether that changed anything.
func fillIn(m *Metadata, info importer.Info) (changed bool) {
	if m.Title == "" && info.Title != "" {
		m.Title, changed = info.Title, true
	}
	fill := func(o *Object, key string, value json.RawMessage) {
		if o.Get(key) == nil {
			o.Set(key, value)
			changed = true
		}
	}
	text := func(s string) json.RawMessage {
		b, _ := json.Marshal(s)
		return b
	}
	if info.Model != "" {
		fill(&m.Config, "model_id", text(info.Model))
	}
	var from, extra Object // the member "import": the origin of the context
	_ = from.UnmarshalJSON(orEmpty(m.Extra.Get("import")))
	fill(&from, "format", text(string(info.Format)))
	if info.Session != "" {
		fill(&from, "session", text(info.Session))
	}
	if !info.CreatedAt.IsZero() {
		fill(&from, "created_at", text(info.CreatedAt.UTC().Format(time.RFC3339Nano)))
	}
	if info.Extra != nil {
		var stated Object
		_ = stated.UnmarshalJSON(info.Extra)
		_ = extra.UnmarshalJSON(orEmpty(from.Get("extra")))
		for _, member := range stated.Members() {
			fill(&extra, member.Key, member.Value)
		}
		if raw, err := extra.MarshalJSON(); err == nil {
			from.Set("extra", raw)
		}
	}
	if raw, err := from.MarshalJSON(); err == nil && changed {
		m.Extra.Set("import", raw)
	}
	return changed
}

func orEmpty(object json.RawMessage) []byte {
	if object == nil {
		return []byte("{}")
	}
	return object
}

// conversation is a context in the form that package importer takes.
type conversation struct{ c *Context }

func (v *conversation) Close() error {
	v.c.mu.Lock()
	v.c.imported = true
	v.c.mu.Unlock()
	return v.c.Close()
}

func (v *conversation) Branches(ctx context.Context) ([]importer.Branch, error) {
	if err := v.c.Refresh(ctx); err != nil {
		return nil, err
	}
	m := v.c.Current()
	var out []importer.Branch
	for _, b := range m.Branches {
		end, err := v.c.End(m, b.Line)
		if err != nil {
			return nil, err
		}
		lines, err := branch.Lines(m, b.Line, end)
		if err != nil {
			return nil, err
		}
		slices.Reverse(lines)
		spans := make([]importer.Span, len(lines))
		for i, l := range lines {
			spans[i] = importer.Span{Line: l.Line, To: l.To}
		}
		out = append(out, importer.Branch{Name: b.Name, Spans: spans})
	}
	return out, nil
}

// comparedBytes bounds the stored messages that are in memory at once for a comparison.
const comparedBytes = 8 << 20

func (v *conversation) Messages(ctx context.Context, name string, from, to int64) ([]importer.Record, error) {
	b, err := v.c.Branch(name)
	if err != nil {
		return nil, err
	}
	var out []importer.Record
	size := 0
	for m, err := range b.From(ctx, from) {
		if err != nil {
			return nil, err
		}
		r := importer.Record{ID: m.ID}
		if m.Unavailable == nil {
			if r.Body, err = m.Body(ctx); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
		if size += len(r.Body); size >= comparedBytes || int64(len(out)) >= to-from {
			break
		}
	}
	return out, nil
}

func (v *conversation) Fork(ctx context.Context, name, from string, at int64, attrs map[string]json.RawMessage) error {
	var members []ctxfolder.Member
	for _, k := range slices.Sorted(maps.Keys(attrs)) {
		members = append(members, ctxfolder.Member{Key: k, Value: attrs[k]})
	}
	if from == "" {
		_, err := v.c.NewBranch(ctx, name, members...)
		return err
	}
	b, err := v.c.Branch(from)
	if err == nil {
		_, err = b.Fork(ctx, name, at, members...)
	}
	return err
}

func (v *conversation) Append(ctx context.Context, name string, at int64, records []importer.Record) error {
	b, err := v.c.Branch(name)
	if err != nil {
		return err
	}
	drafts := make([]Draft, len(records))
	for i, r := range records {
		drafts[i] = Draft{ID: r.ID, OriginID: r.OriginID, Role: r.Role, Type: r.Type, CreatedAt: r.CreatedAt, Body: r.Body}
	}
	results, err := b.AppendBatch(ctx, drafts, AtPosition(at))
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
		if err == nil && r.Existed {
			err = fmt.Errorf("%w: message %s is at position %d already", ErrConflict, r.ID, r.Position)
		}
	}
	return err
}

func (v *conversation) SetActive(ctx context.Context, name string) error {
	return v.c.Switch(ctx, name)
}

var (
	_ importer.Store        = importStore{}
	_ importer.Conversation = (*conversation)(nil)
)
