package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// compare finds out what has to happen.
func compare(ctx context.Context, local, remote Peer, plans []*plan, o Options) error {
	err := heads(ctx, local, plans, func(p *plan) (*Head, bool, string) {
		return &p.l, p.createL, p.since(func(a *agreed) string { return a.Local })
	})
	if err == nil {
		err = heads(ctx, remote, plans, func(p *plan) (*Head, bool, string) {
			return &p.r, p.createR, p.since(func(a *agreed) string { return a.Remote })
		})
	}
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.err = firstOf(p.err, p.l.Err, p.r.Err); p.err != nil {
			continue
		}
		if p.isRemoved() {
			p.remove = p.removed
			continue
		}
		if !p.l.Continues || !p.r.Continues || p.createL || p.createR {
			p.base = nil
		}
		p.match()
		p.compareChanged()
	}
	if err := compareRows(ctx, local, remote, plans, false); err != nil {
		return err
	}
	if err := compareRows(ctx, local, remote, plans, true); err != nil {
		return err
	}
	for _, p := range plans {
		if p.err != nil || p.remove != nil {
			continue
		}
		if p.heal {
			p.restore()
			continue
		}
		kept, err := keptBranches(ctx, local, remote, p)
		if errors.Is(err, ctxdir.ErrNotExist) {
			p.err = wentAway(err)
			continue
		}
		if err != nil {
			return err
		}
		p.steps(kept)
	}
	for _, p := range plans {
		p.synced = p.report(o.Push, o.Pull)
	}
	return nil
}

func (p *plan) since(side func(*agreed) string) string {
	if p.base == nil {
		return ""
	}
	return side(p.base)
}

// heads gets the heads of one side.
func heads(ctx context.Context, of Peer, plans []*plan, side func(*plan) (head *Head, missing bool, since string)) error {
	var requests []HeadRequest
	var into []*Head
	for _, p := range plans {
		head, missing, since := side(p)
		if missing {
			head.Continues = true
			continue
		}
		requests, into = append(requests, HeadRequest{p.id, since}), append(into, head)
	}
	if len(requests) == 0 {
		return nil
	}
	got, err := of.Heads(ctx, requests)
	if err == nil && len(got) != len(requests) {
		err = fmt.Errorf("the peer sent %d heads, not %d", len(got), len(requests))
	}
	if err != nil {
		return err
	}
	for i, h := range got {
		if h.Err == nil {
			h.Err = h.check()
		}
		*into[i] = h
	}
	return nil
}

// check reports whether a head can be one: what a peer says decides what happens here.
func (h *Head) check() error {
	names := map[string]bool{}
	for i := range h.Branches {
		b := &h.Branches[i]
		end := int64(0)
		for _, s := range b.Lines {
			if s.End < end || s.End > maxPosition {
				return fmt.Errorf("%w: %w: the lines of branch %q are not in order", errProtocol, ctxdir.ErrInvalid, b.Name)
			}
			end = s.End
		}
		if len(b.Lines) == 0 || names[b.Name] || b.Name == "" {
			return fmt.Errorf("%w: %w: branch %q has no lines, or is there twice", errProtocol, ctxdir.ErrInvalid, b.Name)
		}
		names[b.Name] = true
	}
	if len(h.Branches) == 0 {
		return fmt.Errorf("%w: %w: a context without branches", errProtocol, ctxdir.ErrInvalid)
	}
	return nil
}

// rowsAtOnce bounds the rows of one side that are in memory at once. A row takes some 120 bytes.
const rowsAtOnce = 1 << 16

// asked is positions whose rows are compared.
type asked struct {
	p *plan
	x *pair
	span
}

// compareRows compares rows. With sums, it compares those again whose times differ, of contexts on which both sides never agreed:
// each may have got the same message at another time.
func compareRows(ctx context.Context, local, remote Peer, plans []*plan, sums bool) error {
	var of []asked
	for _, p := range plans {
		if p.err != nil || p.remove != nil {
			continue
		}
		if !sums {
			for _, x := range p.pairs {
				for _, at := range x.rows {
					of = append(of, asked{p, x, at})
				}
			}
			continue
		}
		if p.base != nil || p.heal {
			continue
		}
		versions := p.versions
		p.versions = nil
		for i := 0; i < len(versions); {
			n := i + 1
			for n < len(versions) && versions[n].pair == versions[i].pair && versions[n].l.Position == versions[n-1].l.Position+1 {
				n++
			}
			of = append(of, asked{p, versions[i].pair, span{versions[i].l.Position, versions[n-1].l.Position + 1}})
			i = n
		}
	}
	for len(of) > 0 {
		var now []asked
		for left := int64(rowsAtOnce); left > 0 && len(of) > 0; {
			part := of[0]
			part.to = min(part.to, part.from+left)
			left -= part.to - part.from
			now = append(now, part)
			if of[0].from = part.to; of[0].from == of[0].to {
				of = of[1:]
			}
		}
		same, err := compareSpans(ctx, local, remote, now, sums)
		if err != nil {
			return err
		}
		if last := now[len(now)-1]; !same && len(of) > 0 && of[0].x == last.x && of[0].from == last.to {
			of = of[1:] // what comes after a difference differs
		}
	}
	return nil
}

// compareSpans compares the rows of spans. It reports whether the messages of the last one are the same.
func compareSpans(ctx context.Context, local, remote Peer, of []asked, sums bool) (same bool, err error) {
	of = slices.DeleteFunc(slices.Clone(of), func(a asked) bool { return a.p.err != nil })
	if len(of) == 0 {
		return false, nil
	}
	l, r := make([]Range, len(of)), make([]Range, len(of))
	for i, a := range of {
		l[i] = Range{ID: a.p.id, Line: a.x.l.Line(), From: a.from, To: a.to, Sums: sums || a.p.heal}
		r[i] = Range{ID: a.p.id, Line: a.x.r.Line(), From: a.from, To: a.to, Sums: sums}
	}
	fail := func(i int, err error) { of[i].p.err = err }
	ofL, err := local.Rows(ctx, l)
	if err != nil {
		if err := withoutGone(ctx, local, l, err, fail); err != nil {
			return false, err
		}
		return compareSpans(ctx, local, remote, of, sums)
	}
	ofR, err := remote.Rows(ctx, r)
	if err == nil && len(ofR) != len(r) {
		err = fmt.Errorf("the peer sent %d ranges of rows, not %d", len(ofR), len(r))
	}
	if err != nil {
		if err := withoutGone(ctx, remote, r, err, fail); err != nil {
			return false, err
		}
		return compareSpans(ctx, local, remote, of, sums)
	}
	for i, a := range of {
		same = a.p.take(a.x, a.span, ofL[i], ofR[i])
	}
	return same, nil
}

// wentAway is the error of a context of which others removed a part for good after it was described: compare it again.
func wentAway(err error) error { return fmt.Errorf("%w: %w", ctxdir.ErrPosition, err) }

// withoutGone finds out which of the ranges that a peer was asked for made it fail, since their lines are gone meanwhile, and
// calls fail with each. It returns the error if there are none.
func withoutGone(ctx context.Context, of Peer, ranges []Range, err error, fail func(i int, err error)) error {
	if !errors.Is(err, ctxdir.ErrNotExist) {
		return err
	}
	for i, r := range ranges {
		_, gone := of.Rows(ctx, []Range{{ID: r.ID, Line: r.Line, From: r.From, To: r.From}})
		switch {
		case errors.Is(gone, ctxdir.ErrNotExist):
			fail(i, wentAway(gone))
			err = nil
		case gone != nil:
			return gone
		}
	}
	return err
}

// keptBranches returns the function that says whether the peer has all messages of a local branch on another branch too.
func keptBranches(ctx context.Context, local, remote Peer, p *plan) (func(*pair) bool, error) {
	kept := map[*pair]bool{}
	for _, x := range p.pairs {
		if x.l == nil || x.r == nil || x.common == x.l.Len() || x.common == x.r.Len() {
			continue
		}
		n := x.l.Len()
		for _, y := range p.pairs {
			if y == x || kept[x] {
				continue
			}
			if y.l != nil && sharedLines(x.l, y.l) == n {
				kept[x] = true
				break
			}
			if y.r == nil || y.r.Len() < n || sharedLines(x.r, y.r) < x.common {
				continue
			}
			from := x.common
			l, err := local.Rows(ctx, []Range{{ID: p.id, Line: x.l.Line(), From: from, To: n}})
			if err != nil {
				return nil, err
			}
			r, err := remote.Rows(ctx, []Range{{ID: p.id, Line: y.r.Line(), From: from, To: n}})
			if err != nil {
				return nil, err
			}
			same := len(l[0]) == int(n-from) && len(r) == 1 && len(r[0]) == len(l[0])
			for i := 0; same && i < len(l[0]); i++ {
				same = l[0][i].ID == r[0][i].ID
			}
			kept[x] = same
		}
	}
	return func(x *pair) bool { return kept[x] }, nil
}

// isRemoved reports whether one side removed the context, while the other one left branches and metadata as they were when both
// agreed. Otherwise the context comes back.
func (p *plan) isRemoved() bool {
	if p.removed == nil || p.base == nil {
		return false
	}
	h, line := &p.l, func(x *linePair) uuid.UUID { return x.Local }
	if p.removed == &p.remote {
		h, line = &p.r, func(x *linePair) uuid.UUID { return x.Remote }
	}
	left := len(h.Branches)
	for i := range p.base.Lines {
		x := &p.base.Lines[i]
		if b := named(h.Branches, x.Name); b != nil && isAs(b, line(x), x.Len) {
			left--
		}
	}
	return left == 0 && h.Continues && maps.Equal(h.Meta.members().sums(), p.base.Members)
}
