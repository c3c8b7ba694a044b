package rows

import (
	"context"
	"fmt"
	"path/filepath"
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
		Goal: "≤ 2 × reading their metadata files",
		Notes: []string{
			fmt.Sprintf("Each context has %d messages. Each list reopens the store. "+
				"The floor opens, reads and closes every metadata.json, by paths known beforehand.", each),
		},
	}
	var lanes []measure.Lane
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
		lanes = append(lanes, e.listLane(f, count+1))
		if eng.Name == engine.Ours {
			lanes = append(lanes, e.bareListLane(f.Dir, append(ids, f.ID)))
		}
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.atMost(2, value, "p50 / ", engine.Ours, floorRead)
	return []*Result{r}, e.explain(r, lanes[0])
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
	once := func() error {
		var err error
		if f.store, err = f.Engine.Open(f.Dir, engine.Full); err != nil {
			return err
		}
		list, err := f.store.List()
		if err == nil && len(list) != want {
			err = fmt.Errorf("%d contexts listed, there are %d", len(list), want)
		}
		return err
	}
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error { // warms the page cache
			if err := once(); err != nil {
				return err
			}
			return f.Close()
		},
		Turn: func(t *measure.Turn) error {
			for range e.ops(20) {
				if t.Over() {
					break
				}
				if err := t.Time(once); err != nil {
					return err
				}
				if err := f.Close(); err != nil {
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
