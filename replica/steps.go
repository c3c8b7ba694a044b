package replica

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// steps decides what happens. kept says of a pair whether another branch of the peer has all messages of the local one.
func (p *plan) steps(kept func(*pair) bool) {
	p.name()
	p.renames(&p.local, p.l.Branches, func(x *pair) *Branch { return x.l })
	p.renames(&p.remote, p.r.Branches, func(x *pair) *Branch { return x.r })
	for _, x := range p.pairs {
		if x.l != nil && x.r != nil {
			p.content(x, kept)
		}
	}
	p.mergeMeta()
	p.removals()
	for _, x := range slices.Clone(p.pairs) {
		switch {
		case x.l == nil && x.r != nil:
			p.add(&p.local, x, x.r, func(y *pair) (*Branch, *Branch) { return y.r, y.l })
		case x.r == nil && x.l != nil:
			p.add(&p.remote, x, x.l, func(y *pair) (*Branch, *Branch) { return y.l, y.r })
		}
	}
	given := map[place]bool{}
	for _, v := range p.versions {
		p.version(&v, given)
	}
	p.setMeta()
	p.erasures()
}

// name gives each pair the name that it has afterwards. A name that one side changed counts; if both did, the peer's does.
func (p *plan) name() {
	taken := map[string]bool{}
	for _, x := range p.pairs {
		if x.r == nil {
			continue
		}
		x.name = x.r.Name
		if x.l != nil && x.base != nil && x.r.Name == x.base.Name && alike(p.r.Branches, x.l.Name) == nil {
			x.name = x.l.Name
		}
		if taken[key(x.name)] {
			x.name = x.r.Name
		}
		taken[key(x.name)] = true
	}
	for _, x := range p.pairs {
		if x.r != nil {
			continue
		}
		if x.name = x.l.Name; taken[key(x.name)] {
			x.name = p.free(x.name, taken)
		}
		taken[key(x.name)] = true
	}
}

// renames gives the branches of one side their names. A name that another branch still has is free only after a first step.
func (p *plan) renames(to *side, all []Branch, of func(*pair) *Branch) {
	var second, third []step
	for _, x := range p.pairs {
		b := of(x)
		if b == nil || b.Name == x.name {
			continue
		}
		if o := alike(all, x.name); o == nil || o == named(all, b.Name) {
			second = append(second, step{op: Op{Kind: OpRename, Branch: b.Name, To: x.name}})
			continue
		}
		between := "~" + b.Line().String()
		to.steps = append(to.steps, step{op: Op{Kind: OpRename, Branch: b.Name, To: between}})
		third = append(third, step{op: Op{Kind: OpRename, Branch: between, To: x.name}})
	}
	to.steps = append(append(to.steps, second...), third...)
}

// maxStem bounds what a name for local messages keeps of the name of the branch, in bytes: each takes up to three in the name
// of a folder.
const maxStem = 60

// free returns a name for the local messages of a branch.
func (p *plan) free(name string, taken map[string]bool) string {
	for len(name) > maxStem {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	name += "~" + p.host
	for n, stem := 2, name; taken[key(name)] || alike(p.l.Branches, name) != nil || alike(p.r.Branches, name) != nil; n++ {
		name = stem + "-" + strconv.Itoa(n)
	}
	return name
}

// content brings a branch together that both sides have.
func (p *plan) content(x *pair, kept func(*pair) bool) {
	l, r := x.l.Len(), x.r.Len()
	toLocal := func(rewind bool) {
		if rewind {
			p.local.steps = append(p.local.steps, step{op: Op{Kind: OpRewind, Branch: x.name, N: x.common}})
		}
		p.local.append(x.name, Range{ID: p.id, Line: x.r.Line(), From: x.common, To: r})
	}
	switch {
	case l == r && x.common == l:
	case x.base != nil && isAs(x.l, x.base.Local, x.base.Len):
		toLocal(x.common < l)
	case x.base != nil && isAs(x.r, x.base.Remote, x.base.Len):
		if x.common < r {
			p.remote.steps = append(p.remote.steps, step{op: Op{Kind: OpRewind, Branch: x.name, N: x.common}})
		}
		p.remote.append(x.name, Range{ID: p.id, Line: x.l.Line(), From: x.common, To: l})
	case x.common == l:
		toLocal(false)
	case x.common == r:
		p.remote.append(x.name, Range{ID: p.id, Line: x.l.Line(), From: x.common, To: l})
	case kept(x):
		toLocal(true)
	default:
		taken := map[string]bool{}
		for _, y := range p.pairs {
			taken[key(y.name)] = true
		}
		x.diverged = p.free(x.name, taken)
		p.diverged = append(p.diverged, x.diverged)
		p.local.steps = append(p.local.steps, step{op: Op{Kind: OpFork, Branch: x.diverged, From: x.name, N: l}})
		toLocal(true)
		p.pairs = append(p.pairs, &pair{name: x.diverged})
		p.remote.steps = append(p.remote.steps, step{op: Op{Kind: OpFork, Branch: x.diverged, From: x.name, N: x.common}})
		p.remote.append(x.diverged, Range{ID: p.id, Line: x.l.Line(), From: x.common, To: l})
	}
}

// removals removes the branches that one side removed while the other one left them as they were. The active one stays: its
// branch comes back.
func (p *plan) removals() {
	p.pairs = slices.DeleteFunc(p.pairs, func(x *pair) bool {
		switch {
		case x.base == nil || x.l != nil && x.r != nil:
			return false
		case x.l == nil && x.r != nil && isAs(x.r, x.base.Remote, x.base.Len) && p.merged.Active != x.name:
			p.remote.last = append(p.remote.last, step{op: Op{Kind: OpRemove, Branch: x.name}})
			return true
		case x.r == nil && x.l != nil && isAs(x.l, x.base.Local, x.base.Len) && p.merged.Active != x.name:
			p.local.last = append(p.local.last, step{op: Op{Kind: OpRemove, Branch: x.name}})
			return true
		}
		return false
	})
}

// add adds a branch of the other side: a fork of the one that shares the most messages with it, as far as this side has them
// then.
func (p *plan) add(to *side, x *pair, b *Branch, sides func(*pair) (theirs, ours *Branch)) {
	var from string
	var shared int64
	offer := func(name string, n int64) {
		if n > shared {
			from, shared = name, n
		}
	}
	for _, y := range p.pairs {
		theirs, ours := sides(y)
		switch {
		case y == x || theirs == nil:
		case ours != nil:
			n := sharedLines(b, theirs)
			if y.diverged != "" && to == &p.remote {
				offer(y.diverged, n)
			}
			offer(y.name, min(n, max(y.common, to.end(y.name))))
		case to.has(y.name):
			offer(y.name, sharedLines(b, theirs))
		}
	}
	create := to == &p.local && p.createL || to == &p.remote && p.createR
	switch {
	case from != "":
		to.steps = append(to.steps, step{op: Op{Kind: OpFork, Branch: x.name, From: from, N: shared}})
	case create && !to.begun:
		if x.name != created {
			to.steps = append(to.steps, step{op: Op{Kind: OpRename, Branch: created, To: x.name}})
		}
	default:
		to.steps = append(to.steps, step{op: Op{Kind: OpNew, Branch: x.name}})
	}
	to.append(x.name, Range{ID: p.id, Line: b.Line(), From: shared, To: b.Len()})
	to.meta, to.begun = true, true
}

// created is the branch that a new context has.
const created = "main"

// place is where a side has a message.
type place struct {
	to       *side
	line     uuid.UUID
	position int64
}

// version gives one side the version of a message that the other one has. given are the messages that got one already:
// several branches may show a message.
func (p *plan) version(v *version, given map[place]bool) {
	at, line := v.l.Position, v.l.Line
	kind := OpReplace
	to, of := &p.local, v.pair.r
	switch {
	case v.l.Gone && v.r.Gone, v.l.Sum != 0 && v.l.Sum == v.r.Sum:
		return
	case v.l.Gone:
		kind = OpAppend
	case v.r.Gone:
		kind, to, of, line = OpAppend, &p.remote, v.pair.l, v.r.Line
	case v.l.StoredAt.After(v.r.StoredAt):
		to, of, line = &p.remote, v.pair.l, v.r.Line
	}
	if given[place{to, line, at}] {
		return
	}
	given[place{to, line, at}] = true
	if kind == OpAppend {
		p.healed++
		if to == &p.local {
			p.healedL++
		}
	}
	to.steps = append(to.steps, step{op: Op{Kind: kind, Branch: v.pair.name}, from: Range{ID: p.id, Line: of.Line(), From: at, To: at + 1}})
}

// restore gives this side the messages that are not available here.
func (p *plan) restore() {
	given := map[place]bool{}
	for _, v := range p.versions {
		v.pair.name, v.l.Gone = v.pair.l.Name, true
		p.version(&v, given)
	}
}

// erasures finds the messages that one side erased. Both were told of those in the agreement: such a message is here again
// only if it came from somewhere else since.
func (p *plan) erasures() {
	known := map[uuid.UUID]bool{}
	if base := p.before(); base != nil {
		for _, id := range base.Erased {
			known[id] = true
		}
	}
	l, r := erasedIn(p.l.Changed), erasedIn(p.r.Changed)
	of := func(ours, theirs map[uuid.UUID]bool, rows []ctxdir.Row, isOurs bool) []uuid.UUID {
		all := map[uuid.UUID]bool{}
		for id := range theirs {
			all[id] = !ours[id] && !known[id]
		}
		for _, row := range rows {
			if !row.Erased && known[row.ID] && !ours[row.ID] {
				all[row.ID] = true
			}
		}
		for id, byLocal := range p.erased {
			all[id] = all[id] || byLocal != isOurs
		}
		maps.DeleteFunc(all, func(_ uuid.UUID, is bool) bool { return !is })
		return slices.SortedFunc(maps.Keys(all), compareIDs)
	}
	p.local.erase, p.remote.erase = of(l, r, p.l.Changed, true), of(r, l, p.r.Changed, false)
	for _, all := range []map[uuid.UUID]bool{l, r, p.erased} {
		for id := range all {
			known[id] = true
		}
	}
	p.known = slices.SortedFunc(maps.Keys(known), compareIDs)
}

func erasedIn(rows []ctxdir.Row) map[uuid.UUID]bool {
	all := map[uuid.UUID]bool{}
	for _, r := range rows {
		if r.Erased {
			all[r.ID] = true
		}
	}
	return all
}
