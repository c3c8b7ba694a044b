package writer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

type worker struct {
	Job
	ctx     context.Context
	random  *rand.Rand
	account *account
	store   *ctxdir.Store
	shared  []*ctxdir.Context
	own     []*ctxdir.Context
	taken   []uuid.UUID // contexts that were imported or migrated
	number  int         // of things that get a number
	at      Step        // what is being done
}

// work works until the process is ended or something fails.
func work(j Job) error {
	a, err := openAccount(j.Account)
	if err != nil {
		return err
	}
	w := &worker{Job: j, ctx: context.Background(), random: rand.New(rand.NewPCG(j.Seed, 0)), account: a}
	w.at = Step{Op: Tidy, Value: "open"}
	err = w.open()
	if err == nil {
		fmt.Println("ready")
	}
	for err == nil {
		w.at = Step{Op: Tidy, Value: "look"}
		err = w.pick()(w)
	}
	w.at.State, w.at.Error = Failed, err.Error()
	return errors.Join(err, a.write(w.at))
}

// open opens the store and its contexts. Logs are sealed early, so that there are many seals and merges.
func (w *worker) open() (err error) {
	sealed := knobs.SealBytes(int64(16<<10) << w.random.IntN(6))
	text := ctxdir.Options{TextThreshold: int64(1<<10) << w.random.IntN(6)}
	if w.store, err = ctxdir.Open(w.Store, sealed, text); err != nil {
		return err
	}
	search.Attach(w.store) // as ctxtool does: if there is an index, it loses what is erased, and stays
	w.shared, w.own = nil, nil
	for _, id := range w.Shared {
		c, err := w.store.Open(w.ctx, id)
		if err != nil {
			return err
		}
		w.shared = append(w.shared, c)
	}
	for s, err := range w.store.List(w.ctx, ctxdir.ListOptions{}) {
		if err != nil {
			return err
		}
		if s.Title != w.Name {
			continue
		}
		c, err := w.store.Open(w.ctx, s.ID)
		if err != nil {
			return err
		}
		w.own = append(w.own, c)
	}
	return nil
}

// close lets go of everything, which seals what was appended.
func (w *worker) close() error {
	var errs []error
	for _, c := range append(w.shared, w.own...) {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, w.store.Close())...)
}

// operations are what a writer does, and how often.
var operations = []struct {
	weight int
	do     func(*worker) error
}{
	{24, (*worker).appendShared}, {5, (*worker).burst}, {24, (*worker).appendOwn}, {10, (*worker).replace}, {2, (*worker).erase},
	{4, (*worker).fork}, {3, (*worker).forkShared}, {3, (*worker).rename}, {3, (*worker).rewind}, {3, (*worker).remove},
	{2, (*worker).newBranch},
	{4, (*worker).configure}, {2, (*worker).create}, {1, (*worker).delete}, {2, (*worker).importFile}, {1, (*worker).migrate},
	{2, (*worker).seal}, {2, (*worker).archive}, {1, (*worker).unarchive}, {1, (*worker).externalise},
	{2, (*worker).collect}, {1, (*worker).reopen},
}

func (w *worker) pick() func(*worker) error {
	all := 0
	for _, o := range operations {
		all += o.weight
	}
	at := w.random.IntN(all)
	for _, o := range operations {
		if at -= o.weight; at < 0 {
			return o.do
		}
	}
	panic("weights do not add up")
}

// step puts down what is about to be done, does it, and puts down what came of it. Of what was busy nothing has
// happened, and the writer goes on.
func (w *worker) step(s Step, do func(s *Step) error) error {
	s.State = Begun
	if err := w.account.write(s); err != nil {
		return err
	}
	w.at = s
	err := do(&s)
	switch {
	case err == nil:
		s.State = Done
	case errors.Is(err, ctxdir.ErrLocked):
		s.State, s.Error = Busy, err.Error()
	default:
		return err
	}
	return w.account.write(s)
}

// name is a new one, for a branch.
func (w *worker) name() string {
	return fmt.Sprintf("%s-%08x", w.Name, w.random.Uint32())
}

// branches are the names of those in a context that the writer made.
func (w *worker) branches(c *ctxdir.Context) (names []string) {
	for _, b := range c.Metadata().Branches {
		if strings.HasPrefix(b.Name, w.Name+"-") {
			names = append(names, b.Name)
		}
	}
	return names
}

// branch is one of the writer's own, and in its own contexts also the first one. nil: there is none.
func (w *worker) branch() (*ctxdir.Context, *ctxdir.Branch, error) {
	type place struct {
		c    *ctxdir.Context
		name string
	}
	var places []place
	for _, c := range slices.Concat(w.shared, w.own) {
		for _, name := range w.branches(c) {
			places = append(places, place{c, name})
		}
	}
	for _, c := range w.own {
		places = append(places, place{c, mainBranch})
	}
	if len(places) == 0 {
		return nil, nil, nil
	}
	p := places[w.random.IntN(len(places))]
	b, err := p.c.Branch(p.name)
	return p.c, b, err
}

func (w *worker) anyContext() *ctxdir.Context {
	at := w.random.IntN(len(w.shared) + len(w.own))
	if at < len(w.shared) {
		return w.shared[at]
	}
	return w.own[at-len(w.shared)]
}

func (w *worker) sharedContext() *ctxdir.Context { return w.shared[w.random.IntN(len(w.shared))] }

// uuid is a new id, from the seed.
func (w *worker) uuid() uuid.UUID {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(w.random.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}
