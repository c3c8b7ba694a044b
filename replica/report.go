package replica

import (
	"slices"

	"github.com/google/uuid"
)

func (r *Synced) isEmpty() bool {
	return r.Pushed+r.Pulled+r.Healed+r.Erased == 0 && r.Branches == 0 && !r.Removed && !r.meta
}

// isComplete reports whether nothing was left to do on the side that Push or Pull leaves as it is.
func (p *plan) isComplete(push, pull bool) bool {
	return (!push || !p.local.hasWork(p.remove)) && (!pull || !p.remote.hasWork(p.remove))
}

// report counts what a plan does. Push or Pull leave one side as it is.
func (p *plan) report(push, pull bool) Synced {
	r := Synced{ID: p.id, Diverged: p.diverged}
	var sides []*side
	if !push {
		sides = append(sides, &p.local)
	}
	if !pull {
		sides = append(sides, &p.remote)
	}
	r.Removed = p.remove != nil && slices.Contains(sides, p.remove)
	branches := map[string]bool{}
	var last []step
	for _, to := range sides {
		last = append(last, to.last...)
		r.Erased += int64(len(to.erase))
		for _, t := range to.steps {
			switch t.op.Kind {
			case OpAppend, OpReplace:
				n := t.from.To - t.from.From
				if to == &p.local {
					r.Pulled += n
				} else {
					r.Pushed += n
				}
			case OpMetadata:
				r.meta = true
			case OpRename:
				branches[t.op.To] = true
			default:
				branches[t.op.Branch] = true
			}
		}
	}
	for _, x := range p.pairs {
		if branches[x.name] && x.diverged == "" && !slices.Contains(p.diverged, x.name) {
			r.Branches++
		}
	}
	for _, s := range last { // those that were removed have no pair any more
		if s.op.Kind == OpRemove {
			r.Branches++
		}
	}
	if p.copiedHere {
		r.Pulled += p.copied
	} else {
		r.Pushed += p.copied
	}
	r.meta = r.meta || p.whole
	if !push {
		r.Healed += p.healedL
		r.Pulled -= p.healedL
	}
	if !pull {
		r.Healed += p.healed - p.healedL
		r.Pushed -= p.healed - p.healedL
	}
	return r
}

// agreement is what both sides agree on after the changes of a plan: branches of the same name and length.
func (p *plan) agreement() *agreed {
	a := &agreed{Local: p.l.Commit, Remote: p.r.Commit, Members: p.sums, Erased: p.known}
	known := map[[2]uuid.UUID]bool{}
	for i := range p.r.Branches {
		r := &p.r.Branches[i]
		l := named(p.l.Branches, r.Name)
		if l == nil || l.Len() != r.Len() {
			continue
		}
		a.Lines = append(a.Lines, linePair{r.Name, l.Line(), r.Line(), r.Len()})
		known[[2]uuid.UUID{l.Line(), r.Line()}] = true
	}
	if p.base == nil {
		return a
	}
	for _, was := range p.base.Lines { // branches may descend from them
		shows := func(all []Branch, line uuid.UUID) bool {
			return slices.ContainsFunc(all, func(b Branch) bool { return endOn(&b, line) > 0 })
		}
		if !known[[2]uuid.UUID{was.Local, was.Remote}] && shows(p.l.Branches, was.Local) && shows(p.r.Branches, was.Remote) {
			was.Name = ""
			a.Lines = append(a.Lines, was)
		}
	}
	return a
}

// partly is what both sides agree on after some of the changes of a plan, when it failed: what they agreed on before, and the
// beginnings of branches that travelled. What changed since then is compared again. Without them, a branch that is removed
// meanwhile would look new on the side that got it.
func (p *plan) partly(before *agreed) *agreed {
	var a agreed
	if base := p.before(); base != nil {
		a = *base
	} else if before != nil {
		a.Erased = before.Erased
	}
	a.Lines = slices.Clone(a.Lines)
	for i := range p.l.Branches {
		l := &p.l.Branches[i]
		n, ok := p.moved[l.Name]
		r := named(p.r.Branches, l.Name)
		if !ok || r == nil {
			continue
		}
		a.Lines = slices.DeleteFunc(a.Lines, func(x linePair) bool {
			return x.Name == l.Name || x.Name != "" && x.Local == l.Line() && x.Remote == r.Line() // under a former name
		})
		a.Lines = append(a.Lines, linePair{l.Name, l.Line(), r.Line(), min(n, l.Len(), r.Len())})
	}
	return &a
}
