package replica

import (
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// match finds the branches that belong together.
func (p *plan) match() {
	usedL, usedR := map[string]bool{}, map[string]bool{}
	add := func(x *pair) {
		if x.l != nil {
			usedL[x.l.Name] = true
		}
		if x.r != nil {
			usedR[x.r.Name] = true
		}
		p.pairs = append(p.pairs, x)
	}
	if base := p.before(); base != nil {
		for i := range base.Lines {
			b := &base.Lines[i]
			if b.Name == "" {
				continue
			}
			x := &pair{base: b}
			x.l = base.branchOf(p.l.Branches, b, func(l *linePair) uuid.UUID { return l.Local })
			x.r = base.branchOf(p.r.Branches, b, func(l *linePair) uuid.UUID { return l.Remote })
			if x.l != nil && x.l.Line() == b.Local && x.l.Len() < b.Len || x.r != nil && x.r.Line() == b.Remote && x.r.Len() < b.Len {
				x.base = nil // a line never gets shorter: the side lost messages
			}
			if isUsed := x.l != nil && usedL[x.l.Name] || x.r != nil && usedR[x.r.Name]; !isUsed && (x.l != nil || x.r != nil) {
				add(x)
			}
		}
	}
	for i := range p.r.Branches {
		r := &p.r.Branches[i]
		if usedR[r.Name] {
			continue
		}
		x := &pair{r: r}
		if l := named(p.l.Branches, r.Name); l != nil && !usedL[l.Name] {
			x.l = l
		}
		add(x)
	}
	for i := range p.l.Branches {
		if l := &p.l.Branches[i]; !usedL[l.Name] {
			add(&pair{l: l})
		}
	}
	for _, x := range p.pairs {
		if x.l != nil && x.r != nil {
			x.common = p.base.shared(x.l, x.r)
			from := x.common
			if p.heal {
				from = 0
			}
			x.compare(from, min(x.l.Len(), x.r.Len()))
		}
	}
}

// branchOf returns the branch of one side that is the one of a pair: by its line, and else by its name.
func (a *agreed) branchOf(all []Branch, of *linePair, line func(*linePair) uuid.UUID) *Branch {
	for i := range all {
		if all[i].Line() == line(of) {
			return &all[i]
		}
	}
	b := named(all, of.Name)
	if b == nil {
		return nil
	}
	for i := range a.Lines {
		if o := &a.Lines[i]; o.Name != "" && o != of && line(o) == b.Line() {
			return nil // another branch, which was renamed
		}
	}
	return b
}

// compare notes positions whose rows have to be compared.
func (x *pair) compare(from, to int64) {
	if from < to {
		x.rows = append(x.rows, span{from, to})
	}
}

// compareChanged notes the positions, below those that are compared anyway, of versions that one side committed since the
// sides agreed.
func (p *plan) compareChanged() {
	note := func(rows []ctxdir.Row, of func(*pair) *Branch) {
		for i := range rows {
			if rows[i].Erased {
				continue
			}
			for _, x := range p.pairs {
				if x.l == nil || x.r == nil || rows[i].Position >= x.common {
					continue
				}
				if owns(of(x), rows[i].Line, rows[i].Position) {
					x.compare(rows[i].Position, rows[i].Position+1)
				}
			}
		}
	}
	if p.base != nil && !p.heal {
		note(p.l.Changed, func(x *pair) *Branch { return x.l })
		note(p.r.Changed, func(x *pair) *Branch { return x.r })
	}
	for _, x := range p.pairs {
		slices.SortFunc(x.rows, func(a, b span) int { return int(min(max(a.from-b.from, -1), 1)) })
		merged := x.rows[:0]
		for _, s := range x.rows {
			if n := len(merged); n > 0 && s.from <= merged[n-1].to {
				merged[n-1].to = max(merged[n-1].to, s.to)
				continue
			}
			merged = append(merged, s)
		}
		x.rows = merged
	}
}

// take compares the rows of a span: as long as the ids are the same, the branches have the messages in common. It reports whether
// they are the same up to the end.
func (p *plan) take(x *pair, s span, l, r []Row) (same bool) {
	for i := range min(len(l), len(r)) {
		at := s.from + int64(i)
		if l[i].Position != at || r[i].Position != at || l[i].ID != r[i].ID {
			return false
		}
		if at == x.common {
			x.common++
		}
		if p.heal {
			if l[i].Sum == 0 && !l[i].Erased && !r[i].Gone && !r[i].Erased {
				p.versions = append(p.versions, version{x, l[i], r[i]})
			}
			continue
		}
		if l[i].Erased != r[i].Erased {
			p.erased[l[i].ID] = l[i].Erased
		}
		if !l[i].Erased && !r[i].Erased && (l[i].Gone != r[i].Gone || !l[i].Gone && !l[i].StoredAt.Equal(r[i].StoredAt)) {
			p.versions = append(p.versions, version{x, l[i], r[i]})
		}
	}
	return int64(min(len(l), len(r))) == s.to-s.from
}
