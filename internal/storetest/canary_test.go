package storetest_test

import (
	"context"
	"flag"
	"fmt"
	crc "hash/crc64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/search"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

var (
	canarySeed  = flag.Uint64("canary.seed", rand.Uint64(), "chooses the calls at which TestNothingIsLeft interrupts removals")
	canaryCalls = flag.Int("canary.calls", 4, "how many calls and how many changes of each removal that are, 0 for all; few with -short")
)

// TestNothingIsLeft removes things for good, in each state of a context: undisturbed, beside another open handle,
// killed at each change, and with each call failing once. Afterwards no byte of what [canaryRemovals] names is below
// the store, and everything else is. A removal that fails, or is killed, is done again; one that succeeds although a
// call failed has removed everything. Then the next program appends, seals, lists and searches, which must not bring
// anything back.
func TestNothingIsLeft(t *testing.T) {
	t.Logf("-canary.seed %d", *canarySeed)
	for _, st := range canaryStates {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			x := st.build(t)
			for _, r := range canaryRemovals {
				t.Run(r.name, func(t *testing.T) { (&trial{x, &st, &r}).run(t) })
			}
		})
	}
}

// TestNothingIsLeftUnseen lets each look at a blob fail once, while a context is removed for good: a blob that cannot be
// looked at may be there.
func TestNothingIsLeftUnseen(t *testing.T) {
	t.Parallel()
	st := canaryStates[slices.IndexFunc(canaryStates, func(st canaryState) bool { return st.name == "with files" })]
	r := canaryRemovals[slices.IndexFunc(canaryRemovals, func(r removal) bool { return r.name == "rm, trash empty" })]
	y := &trial{st.build(t), &st, &r}
	for look := 1; ; look++ {
		p := &faultPlan{blindAt: look}
		for k, files := range y.attempt(t, p, false) {
			t.Errorf("look %d, %s: %s is still in %s", look, p, k, strings.Join(files, ", "))
		}
		if !p.failed {
			t.Logf("%d looks", look-1)
			return
		}
	}
}

// trial is a removal from a store.
type trial struct {
	x  *canaryStore
	st *canaryState
	r  *removal
}

func (y *trial) run(t *testing.T) {
	r := rand.New(rand.NewPCG(*canarySeed, crc64(y.st.name+y.r.name)))
	besides := []bool{false, true}
	if testing.Short() {
		besides = besides[r.IntN(2):][:1]
	}
	leaks := map[kind][]string{}
	var whole *faultPlan
	for _, beside := range besides {
		whole = &faultPlan{}
		for k, files := range y.attempt(t, whole, beside) {
			leaks[k] = append(leaks[k], files...)
		}
	}
	for _, k := range kinds {
		if len(leaks[k]) > 0 {
			t.Errorf("%s is still in %s", k, strings.Join(leaks[k], ", "))
		}
	}
	for _, p := range interruptions(r, whole) {
		beside := r.IntN(2) == 1
		for k, files := range y.attempt(t, p, beside) {
			t.Errorf("%s (beside another handle: %v): %s is still in %s", p, beside, k, strings.Join(files, ", "))
		}
	}
}

func crc64(text string) uint64 { return crc.Checksum([]byte(text), crc.MakeTable(crc.ISO)) }

func (p *faultPlan) String() string {
	if p.dieAt > 0 {
		return fmt.Sprintf("killed at change %d, %s", p.dieAt, p.where)
	}
	return fmt.Sprintf("call %d failed, %s", p.failAt, p.where)
}

// interruptions returns plans that let calls fail, and plans that kill the process before a change. With -short it is one
// plan for a third of the removals.
func interruptions(r *rand.Rand, whole *faultPlan) (all []*faultPlan) {
	add := func(n int, plan func(k int) *faultPlan) {
		for i := range n {
			k := i + 1
			if *canaryCalls > 0 {
				if i >= *canaryCalls {
					return
				}
				k = 1 + r.IntN(n)
			}
			all = append(all, plan(k))
		}
	}
	add(whole.calls, func(k int) *faultPlan { return &faultPlan{failAt: k} })
	add(whole.changes, func(k int) *faultPlan { return &faultPlan{dieAt: k} })
	if testing.Short() {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:r.IntN(3)/2]
	}
	return all
}

// attempt removes things from a copy of the store, and returns the canaries that are left.
func (y *trial) attempt(t *testing.T, p *faultPlan, beside bool) (left map[kind][]string) {
	t.Helper()
	ctx := t.Context()
	x := y.x.clone(t)
	end := func() {}
	if beside {
		end = besideRemoval(t, x.dir)
	}
	s := openWith(t, x.dir, p, engine.InOrder())
	err := y.r.do(ctx, x, s)
	switch {
	case p.dead:
		_ = s.Close()
		s = openWith(t, x.dir, &faultPlan{}, engine.InOrder())
		err = y.r.do(ctx, x, s)
	case p.failed && err != nil:
		err = y.r.do(ctx, x, s)
	}
	if err != nil {
		t.Errorf("%s: %v", p, err)
	}
	kit.Check(t, s.Close())
	found := canaries(t, x.dir)
	end()
	useAgain(t, x.dir)
	for k, files := range canaries(t, x.dir) {
		found[k] = append(found[k], files...)
	}
	left = map[kind][]string{}
	for _, k := range kinds {
		takes := slices.Contains(y.r.takes, k)
		switch {
		case takes && len(found[k]) > 0:
			left[k] = found[k]
		case !takes && len(found[k]) == 0 && !slices.Contains(y.r.may, k):
			t.Errorf("%s: %s is gone too", p, k)
		}
	}
	return left
}

// besideRemoval opens the store as another process does that has read everything. end is what that process does after
// the removal.
func besideRemoval(t *testing.T, dir string) (end func()) {
	t.Helper()
	ctx := t.Context()
	s := openWith(t, dir, &faultPlan{})
	c := kit.Must[*ctxdir.Context](t)(s.Open(ctx, workID()))
	for _, b := range c.Metadata().Branches {
		branch := kit.Must[*ctxdir.Branch](t)(c.Branch(b.Name))
		for m, err := range branch.Messages(ctx, 0, ctxdir.End) {
			kit.Check(t, err, m.Unavailable)
		}
	}
	index := kit.Must[*search.Index](t)(search.Open(ctx, s))
	return func() {
		if err := writeMore(ctx, c); unlessGone(err) != nil {
			t.Errorf("the other handle: %v", err)
		}
		_, err := index.Update(ctx, search.UpdateOptions{})
		kit.Check(t, err, index.Close(), unlessGone(c.Close()), s.Close())
	}
}

func writeMore(ctx context.Context, c *ctxdir.Context) error {
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: []byte(`{"role":"user","content":"afterwards"}`)}); err != nil {
		return err
	}
	return c.Admin().Seal(ctx)
}

// useAgain does what the next program does.
func useAgain(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	s := openWith(t, dir, &faultPlan{})
	kit.Check(t, unlessGone(s.Use(ctx, workID(), func(c *ctxdir.Context) error { return writeMore(ctx, c) })))
	for _, err := range s.List(ctx, ctxdir.ListOptions{Kind: "*"}) {
		kit.Check(t, err)
	}
	index := kit.Must[*search.Index](t)(search.Open(ctx, s))
	_, err := index.Update(ctx, search.UpdateOptions{})
	kit.Check(t, err, index.Close(), s.Close())
}
