package migrate

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/go-json-experiment/json/jsontext"
)

// initialMembers returns the members of a context that never was a legacy one.
func initialMembers(m *engine.Metadata) (ms legacy.Members) {
	names := []string{
		"id", "parent_id", "config", "title", legacy.NamePool, legacy.NameBranches, "active_branch_name", "current_state",
	}
	for _, name := range names {
		if name != "title" || m.Title != "" {
			ms = append(ms, legacy.Member{Name: legacy.Quote(name)})
		}
	}
	return ms
}

// initialMetadata returns the metadata of such a context with everything that the old program requires. It leaves out a
// state that the old program does not accept.
func initialMetadata(m *engine.Metadata) *engine.Metadata {
	m = m.Clone()
	if raw, err := m.Config.MarshalJSON(); err == nil {
		_ = m.Config.UnmarshalJSON(legacy.NewConfig(raw))
	}
	m.State = json.RawMessage(legacy.NewState(jsontext.Value(m.State)))
	return m
}

func (r *legacyWriter) run(ctx context.Context, to legacy.Sink) error {
	r.m = r.c.Current()
	r.load = loader.New(r.c.Dir, r.c.Index, loader.NewPool(0), r.c.Store.Blobs, r.c.Store.Options.Memory)
	defer r.load.Close()
	r.keys, r.written = map[linePosition]jsontext.Value{}, map[[16]byte]uint64{}
	if err := r.measure(); err != nil {
		return err
	}
	if r.from = ParseOrigin(r.m); r.from == nil {
		r.from = &Origin{format: legacy.Monolithic, members: initialMembers(r.m)}
		r.m = initialMetadata(r.m)
	}
	// The lists need the keys, which the pool determines: so the pool takes the first of their two places.
	parts := []func() error{
		func() error { return to.Pool(r.pool(ctx)) },
		func() error { return to.Branches(r.branches(ctx)) },
	}
	pooled := false
	if !slices.ContainsFunc(r.from.members, func(m legacy.Member) bool { return m.Value == nil && m.Is(legacy.NamePool) }) {
		var err error
		if pooled, err = to.Files(r.pool(ctx)); err != nil {
			return err
		}
		parts = parts[1:]
	}
	last := r.from.members.Lasts()
	for i, member := range r.from.members {
		name, _ := legacy.Text(member.Name)
		if pooled && name == legacy.NamePool {
			continue
		}
		if member.Value == nil && (name == legacy.NamePool || name == legacy.NameBranches) && len(parts) > 0 {
			if err := parts[0](); err != nil {
				return err
			}
			parts = parts[1:]
			continue
		}
		value := member.Value
		if last[name] == i {
			value = r.from.value(r.m, name, value)
		}
		if value != nil {
			if err := to.Member(member.Name, value); err != nil {
				return err
			}
		}
	}
	if err := r.since(to, last); err != nil {
		return err
	}
	if len(parts) > 0 && r.hasBranches() { // it had none
		for _, part := range parts {
			if err := part(); err != nil {
				return err
			}
		}
	}
	return to.Prompt(r.from.prompt)
}

// since writes the members that were added after the migration.
func (r *legacyWriter) since(to legacy.Sink, there map[string]int) error {
	for _, name := range places {
		if _, ok := there[name]; !ok && r.from.since(r.m, name) {
			if err := to.Member(legacy.Quote(name), r.from.now(r.m, name)); err != nil {
				return err
			}
		}
	}
	if r.from.path == "" {
		return nil // in a context that was never legacy, they are private data of its creator
	}
	for _, x := range append(r.m.Names().Members(), r.m.Extra.Members()...) {
		if _, ok := there[x.Key]; !ok && x.Key != legacyMember {
			if err := to.Member(legacy.Quote(x.Key), jsontext.Value(x.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *legacyWriter) hasBranches() bool {
	for i := range r.m.Branches {
		if r.isBranch(&r.m.Branches[i], r.of[i]) {
			return true
		}
	}
	return false
}
