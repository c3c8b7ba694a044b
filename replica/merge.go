package replica

import (
	"maps"
	"slices"
	"strings"
)

// renamed returns the metadata with other names of branches, and only with those.
func (t Meta) renamed(names map[string]string) Meta {
	all := t.Branches
	t.Branches = nil
	for _, b := range all {
		if to, ok := names[b.Name]; ok {
			b.Name = to
			t.Branches = append(t.Branches, b)
		}
	}
	if to, ok := names[t.Active]; ok {
		t.Active = to
	}
	return t
}

// mergeMeta merges the metadata of both sides, for the branches that they have in the end.
func (p *plan) mergeMeta() {
	ofL, ofR, ofBase := map[string]string{}, map[string]string{}, map[string]string{}
	for _, x := range p.pairs {
		if x.l != nil {
			ofL[x.l.Name] = x.name
		}
		if x.r != nil {
			ofR[x.r.Name] = x.name
		}
		if x.base != nil {
			ofBase[x.base.Name] = x.name
		}
	}
	l, r := p.l.Meta.renamed(ofL), p.r.Meta.renamed(ofR)
	for _, x := range p.pairs {
		for _, b := range l.Branches {
			if x.diverged != "" && b.Name == x.name {
				b.Name = x.diverged
				l.Branches = append(l.Branches, b)
				break
			}
		}
	}
	var base map[string]uint64
	if p.base != nil {
		base = map[string]uint64{}
		for k, sum := range p.base.Members {
			if name, member, ok := strings.Cut(strings.TrimPrefix(k, "branches/"), "\x00"); ok && strings.HasPrefix(k, "branches/") {
				if to, ok := ofBase[name]; ok {
					k = branchMember(to) + member
				}
			}
			base[k] = sum
		}
	}
	p.mergedMembers = mergeMembers(base, l.members(), r.members(), p.l.Meta.UpdatedAt.After(p.r.Meta.UpdatedAt))
	p.membersL, p.membersR = l.members(), r.members()
	t := p.r.Meta
	if p.createR {
		t = p.l.Meta
	}
	if p.l.Meta.UpdatedAt.After(t.UpdatedAt) {
		t.UpdatedAt = p.l.Meta.UpdatedAt
	}
	t.Branches = nil
	p.merged, p.err = p.mergedMembers.meta(t)
}

// setMeta makes the steps that give both sides the merged metadata, for the branches that are left.
func (p *plan) setMeta() {
	t := p.merged
	t.Branches = nil
	gone := map[string]bool{}
	for _, s := range slices.Concat(p.local.last, p.remote.last) {
		gone[s.op.Branch] = true
	}
	for _, x := range p.pairs {
		t.Branches = append(t.Branches, BranchMeta{Name: x.name})
	}
	all := members{}
	for k, v := range p.mergedMembers {
		if name, _, ok := strings.Cut(strings.TrimPrefix(k, "branches/"), "\x00"); ok && strings.HasPrefix(k, "branches/") && gone[name] {
			continue
		}
		all[k] = v
	}
	full, err := all.meta(t)
	p.err = firstOf(p.err, err)
	p.sums = all.sums()
	for _, s := range []struct {
		to  *side
		has members
	}{{&p.local, p.membersL}, {&p.remote, p.membersR}} {
		if s.to.meta || !maps.Equal(s.has.sums(), p.sums) {
			s.to.steps = append(s.to.steps, step{op: Op{Kind: OpMetadata, Meta: &full}})
		}
		s.to.steps = append(s.to.steps, s.to.last...)
	}
}
