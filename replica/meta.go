package replica

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir"
)

// metaOf returns the metadata of a context.
func metaOf(ctx context.Context, c *ctxdir.Context) (Meta, error) {
	m := c.Metadata()
	t := Meta{
		Title: m.Title, Labels: m.Labels, ParentID: m.ParentID, Kind: m.Kind, ExternalID: m.ExternalID,
		Config: m.Config, State: m.State, Extra: m.Extra, Active: m.ActiveBranch, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
	for _, b := range m.Branches {
		x := BranchMeta{Name: b.Name, State: b.State, Extra: b.Extra}
		if b.SystemPrompt != nil {
			of, err := c.Branch(b.Name)
			if err != nil {
				return t, err
			}
			if x.SystemPrompt, err = of.SystemPrompt(ctx); err != nil {
				return t, err
			}
		}
		t.Branches = append(t.Branches, x)
	}
	return t, nil
}

// setMeta gives a context the metadata t, as far as it has the branches of t.
func setMeta(tx *ctxdir.Tx, t *Meta) error {
	if t == nil {
		return fmt.Errorf("%w: no metadata", ctxdir.ErrInvalid)
	}
	err := tx.Update(func(m *ctxdir.Metadata) error {
		m.Title, m.Labels, m.ParentID, m.Config, m.State, m.Extra = t.Title, t.Labels, t.ParentID, t.Config, t.State, t.Extra
		m.UpdatedAt = t.UpdatedAt
		for _, b := range t.Branches {
			if x := m.Branch(b.Name); x != nil {
				x.SystemPrompt, x.State, x.Extra = b.SystemPrompt, b.State, b.Extra
			}
		}
		return nil
	})
	if m := tx.Metadata(); err == nil && m.ActiveBranch != t.Active && m.Branch(t.Active) != nil {
		err = tx.Switch(t.Active)
	}
	return err
}

// members are the members of metadata, by names such as title, labels/K and branches/NAME/state. No value is nil.
type members map[string]json.RawMessage

func (t *Meta) members() members {
	all := members{}
	set := func(name string, value json.RawMessage) {
		if value = bytes.TrimSpace(value); len(value) > 0 && string(value) != "null" {
			all[name] = value
		}
	}
	text := func(name, value string) {
		if value != "" {
			b, _ := json.Marshal(value) // a text always has JSON
			set(name, b)
		}
	}
	object := func(name string, value json.RawMessage) {
		var of map[string]json.RawMessage
		if json.Unmarshal(value, &of) == nil {
			for k, v := range of {
				set(name+"/"+k, v)
			}
		}
	}
	text("title", t.Title)
	for k, v := range t.Labels {
		text("labels/"+k, v)
	}
	if t.ParentID != (Meta{}).ParentID {
		text("parent_id", t.ParentID.String())
	}
	object("config", t.Config)
	set("state", t.State)
	object("extra", t.Extra)
	text("active_branch", t.Active)
	for _, b := range t.Branches {
		name := branchMember(b.Name)
		set(name+"system_prompt", b.SystemPrompt)
		set(name+"state", b.State)
		object(name+"extra", b.Extra)
	}
	return all
}

// branchMember is how the names of a branch's members begin. A name of a branch can have any character but NUL.
func branchMember(branch string) string { return "branches/" + branch + "\x00" }

// sums returns a checksum of each member, never 0.
func (all members) sums() map[string]uint64 {
	sums := make(map[string]uint64, len(all))
	for k, v := range all {
		sums[k] = max(xxhash.Sum64(v), 1)
	}
	return sums
}

// mergeMembers merges two versions of metadata, member by member. base has the checksums of those on which both sides agreed,
// and is nil if they never did. Where both changed a member, the later version of the metadata counts.
func mergeMembers(base map[string]uint64, l, r members, localIsLater bool) members {
	all := members{}
	ls, rs := l.sums(), r.sums()
	names := maps.Clone(ls)
	maps.Copy(names, rs)
	for k := range names {
		was, known, take := base[k], base != nil, r
		switch {
		case ls[k] == rs[k]:
		case known && rs[k] == was:
			take = l
		case known && ls[k] == was:
		case ls[k] == 0 && !known: // only one side has it
		case rs[k] == 0 && !known, localIsLater:
			take = l
		}
		if v, ok := take[k]; ok {
			all[k] = v
		}
	}
	return all
}

// meta is the reverse of members. What does not travel as a member comes from t, and so do the names of the branches.
func (all members) meta(t Meta) (Meta, error) {
	var err error
	text := func(name string) (s string) {
		if v, ok := all[name]; ok {
			err = firstOf(err, json.Unmarshal(v, &s))
		}
		return s
	}
	object := func(prefix string, was ...json.RawMessage) json.RawMessage { return all.object(prefix, was...) }
	t.Title, t.Active, t.State = text("title"), text("active_branch"), all["state"]
	t.Labels = nil
	for k := range all {
		if name, ok := strings.CutPrefix(k, "labels/"); ok {
			if t.Labels == nil {
				t.Labels = map[string]string{}
			}
			t.Labels[name] = text(k)
		}
	}
	t.ParentID = (Meta{}).ParentID
	if parent := text("parent_id"); parent != "" {
		err = firstOf(err, t.ParentID.UnmarshalText([]byte(parent)))
	}
	t.Config, t.Extra = object("config/", t.Config), object("extra/", t.Extra)
	t.Branches = slices.Clone(t.Branches)
	for i := range t.Branches {
		b := &t.Branches[i]
		name := branchMember(b.Name)
		b.SystemPrompt, b.State, b.Extra = all[name+"system_prompt"], all[name+"state"], object(name+"extra/", b.Extra)
	}
	return t, err
}

// object returns the object of the members whose names begin with a prefix: in the order of an earlier version, and then
// sorted.
func (all members) object(prefix string, was ...json.RawMessage) json.RawMessage {
	var names []string
	for k := range all {
		if name, ok := strings.CutPrefix(k, prefix); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	var order []string
	for _, o := range was {
		order = append(order, keysOf(o)...)
	}
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	b := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(name)
		b = append(append(append(b, key...), ':'), all[prefix+name]...)
	}
	return append(b, '}')
}

// keysOf returns the names of the members of an object, in order.
func keysOf(object json.RawMessage) (keys []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return keys
		}
		if k, ok := t.(string); ok {
			keys = append(keys, k)
		}
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return keys
		}
	}
	return keys
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
