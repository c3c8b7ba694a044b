package rows

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// listRow lists a store of many contexts.
func listRow(ctx context.Context, e *Env) ([]*Result, error) {
	count, each := 1_000, int64(20)
	if e.Quick {
		count, each = 30, 5
	}
	r := &Result{
		Row:  fmt.Sprintf("list %s contexts, with counts and sizes", Count(int64(count))),
		At:   "–",
		Unit: Nanoseconds,
		Notes: []string{
			fmt.Sprintf("Each context has %d messages. Each list reopens the store. "+
				"The floor opens, reads and closes every metadata.json, by paths known beforehand.", each),
		},
	}
	var lanes []measure.Lane
	var fixtures []*Fixture // of the engines with labels
	for _, eng := range e.Engines {
		f, err := e.Fresh(eng, 0)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		ids, err := f.fillMany(count, each, e.Corpus)
		if err != nil {
			return nil, err
		}
		e.Logf("  %s: %d contexts built in %.1f s", eng.Name, count, time.Since(start).Seconds())
		f.all = append(ids, f.ID)
		lanes = append(lanes, e.listLane(f, count+1))
		if eng.Name == engine.Ours {
			lanes = append(lanes, e.bareListLane(f.Dir, f.all))
		}
		if slices.Contains(labelled, eng.Name) {
			fixtures = append(fixtures, f)
		}
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	for _, f := range fixtures {
		if err := f.label(); err != nil {
			return nil, err
		}
	}
	results := []*Result{r}
	for _, anew := range []bool{true, false} {
		labels, err := e.labelRow(ctx, fixtures, anew)
		if err != nil {
			return nil, err
		}
		results = append(results, labels)
	}
	return results, nil
}

// labelRow lists by a label that every tenth context has, with a store that is opened anew for each list or stays open.
func (e *Env) labelRow(ctx context.Context, fixtures []*Fixture, anew bool) (*Result, error) {
	count := len(fixtures[0].all)
	want := min((count+9)/10, 50)
	at := "store kept open"
	if anew {
		at = "store opened anew"
	}
	r := &Result{
		Row:   fmt.Sprintf("list %d of %s contexts, by a label, newest first", want, Count(int64(count))),
		At:    at,
		Unit:  Nanoseconds,
		Goal:  "≤ 1.0 × SQLite",
		Notes: []string{"Every tenth context has the label. SQLite has an index of labels."},
	}
	var lanes []measure.Lane
	for _, f := range fixtures {
		lanes = append(lanes, e.storeLane(f, anew, func(s engine.Store) error {
			list, err := s.(engine.Labelled).ListLabel("ada", 50)
			if err == nil && len(list) != want {
				err = fmt.Errorf("%d contexts listed, there are %d", len(list), want)
			}
			return err
		}))
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.atMost(1, value, "p50 / ", engine.Ours, sqlites...)
	return r, e.explain(r, lanes[0])
}

// label labels every tenth context.
func (f *Fixture) label() error {
	if err := f.Open(engine.Relaxed); err != nil {
		return err
	}
	for k := 0; k < len(f.all); k += 10 {
		if err := f.store.(engine.Labelled).Label(f.all[k], "ada"); err != nil {
			return err
		}
	}
	return f.Close()
}

// fillMany makes contexts beside the one there is.
func (f *Fixture) fillMany(count int, each int64, c *corpus.Corpus) (ids []string, err error) {
	if err := f.Open(engine.Relaxed); err != nil {
		return nil, err
	}
	first := f.ID
	for k := range count {
		if err := f.CloseContext(); err != nil {
			return nil, err
		}
		f.Stream = c.Stream(seed + uint64(k+1)<<32)
		if err := f.fill(each); err != nil {
			return nil, err
		}
		ids = append(ids, f.ID)
	}
	err = f.Close()
	f.ID = first
	return ids, err
}

func (e *Env) listLane(f *Fixture, want int) measure.Lane {
	return e.storeLane(f, true, func(s engine.Store) error {
		list, err := s.List()
		if err == nil && len(list) != want {
			err = fmt.Errorf("%d contexts listed, there are %d", len(list), want)
		}
		return err
	})
}

// storeLane measures list, with anew together with the opening of the store.
func (e *Env) storeLane(f *Fixture, anew bool, list func(s engine.Store) error) measure.Lane {
	once := func() error {
		var err error
		if f.store == nil {
			f.store, err = f.Engine.Open(f.Dir, engine.Full)
		}
		if err != nil {
			return err
		}
		return list(f.store)
	}
	closed := func() error {
		if !anew {
			return nil
		}
		return f.Close()
	}
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error { // warms the page cache
			if err := once(); err != nil {
				return err
			}
			return closed()
		},
		After: f.Close,
		Turn: func(t *measure.Turn) error {
			for range e.ops(20) {
				if t.Over() {
					break
				}
				if err := t.Time(once); err != nil {
					return err
				}
				if err := closed(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (e *Env) bareListLane(dir string, ids []string) measure.Lane {
	var buf []byte
	return measure.Lane{
		Name: floorRead,
		Turn: func(t *measure.Turn) error {
			for range e.ops(20) {
				err := t.Time(func() error {
					for _, id := range ids {
						var err error
						if buf, err = floor.Read(filepath.Join(dir, id, "metadata.json"), buf); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}
