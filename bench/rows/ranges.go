package rows

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// simple measures one lane per engine at one size, and of further engines.
func (e *Env) simple(
	ctx context.Context, r *Result, n int64, lane func(f *Fixture) measure.Lane, further ...*engine.Engine,
) (ours measure.Lane, err error) {
	var lanes []measure.Lane
	for _, eng := range append(e.reading(n), further...) {
		f, err := e.Unchanged(eng, n)
		if err != nil {
			return ours, err
		}
		defer f.Close()
		lanes = append(lanes, lane(f))
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return ours, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	return lanes[0], nil
}

// rangeRow loads 50 messages from the middle half of a branch, each range once, so that no cache of messages
// answers.
func rangeRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(100_000)
	r := &Result{
		Row:  "range of 50 in the middle",
		At:   Count(n),
		Goal: "≤ 0.9 × SQLite",
		Unit: Nanoseconds,
		Notes: []string{
			"A long-lived handle reads and decodes random ranges of the middle half. Another handle has read each range before, " +
				"so the page cache holds it. " +
				"The engines \"one document\" and \"file per message\" already hold the document or the index in memory.",
		},
	}
	ours, err := e.simple(ctx, r, n, func(f *Fixture) measure.Lane {
		turn := uint64(0)
		var starts []int64
		load := func(from int64) error {
			ms, err := f.c.Range(from, from+resumed)
			if err != nil {
				return err
			}
			return decode(ms)
		}
		return measure.Lane{
			Name: f.Engine.Name,
			Before: func() error {
				turn++
				starts = starts[:0]
				for _, k := range permuted(n/2/resumed, turn) {
					starts = append(starts, n/4+k*resumed)
				}
				starts = starts[:min(e.ops(200), len(starts))]
				return warm(f, e.plan(), len(starts), func(i int) error { return load(starts[i]) })
			},
			Turn: func(t *measure.Turn) error {
				for _, from := range starts {
					if t.Over() {
						break
					}
					if err := t.Time(func() error { return load(from) }); err != nil {
						return err
					}
				}
				return nil
			},
			After: f.Close,
		}
	})
	if err != nil {
		return nil, err
	}
	r.atMost(0.9, value, "p50 / ", engine.Ours, sqlites...)
	return []*Result{r}, e.explain(r, ours)
}

// permuted returns the numbers below n in an order of their own for each seed.
func permuted(n int64, seed uint64) []int64 {
	out := make([]int64, n)
	for i, k := range rand.New(rand.NewPCG(seed, 1)).Perm(int(n)) {
		out[i] = int64(k)
	}
	return out
}

// warm does with one handle what a turn will do with the next, for no longer than a turn, and leaves a
// new handle open that has done its first read.
func warm(f *Fixture, p measure.Plan, n int, op func(i int) error) error {
	if err := f.Open(engine.Full); err != nil {
		return err
	}
	for i, start := 0, time.Now(); i < n && time.Since(start) < p.Turn; i++ {
		if err := op(i); err != nil {
			return err
		}
	}
	if err := f.CloseContext(); err != nil {
		return err
	}
	if err := f.Open(engine.Full); err != nil {
		return err
	}
	_, err := f.c.Last(1)
	return err
}

// wholeRow decodes a whole branch, message by message.
func wholeRow(ctx context.Context, e *Env) ([]*Result, error) {
	var results []*Result
	for _, n := range e.sizes(1_000, 100_000) {
		r := &Result{Row: "whole branch decoded", At: Count(n), Unit: Nanoseconds,
			Goal: "≤ 0.6 × SQLite; archived ≤ 1.2 × JSON Lines"}
		results = append(results, r)
		ours, err := e.simple(ctx, r, n, e.wholeLane, engine.Named(engine.Archived))
		if err != nil {
			return nil, err
		}
		r.atMost(0.6, value, "p50 / ", engine.Ours, sqlites...)
		r.atMost(1.2, value, "archived, p50 / ", engine.Archived, engine.Lines)
		if err := e.explain(r, ours); err != nil {
			return nil, err
		}
	}
	results[0].Notes = append(results[0].Notes,
		"A new handle in an open store reads the branch. One goroutine decodes each message and then discards it.")
	return results, nil
}

func (e *Env) wholeLane(f *Fixture) measure.Lane {
	once := func() error {
		if err := f.Open(engine.Full); err != nil {
			return err
		}
		return f.c.All(func(m engine.Stored) error {
			_, err := corpus.Decode(m.Body)
			return err
		})
	}
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error { // warms the page cache
			if err := once(); err != nil {
				return err
			}
			return f.CloseContext()
		},
		Turn: func(t *measure.Turn) error {
			for range e.ops(20) {
				if t.Over() {
					break
				}
				if err := t.Time(once); err != nil {
					return err
				}
				if err := f.CloseContext(); err != nil {
					return err
				}
			}
			return nil
		},
		After: f.Close,
	}
}

// idRow looks messages up by random ids.
func idRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(1_000_000)
	r := &Result{Row: "by id, random", At: Count(n), Goal: "≤ 1.0 × SQLite", Unit: Nanoseconds,
		Notes: []string{"A long-lived handle looks up and decodes random ids. Another handle has looked up each id before. " +
			"JSON Lines scans its file."}}
	ours, err := e.simple(ctx, r, n, func(f *Fixture) measure.Lane {
		turn := uint64(0)
		var at []int64
		find := func(i int64) error {
			m, err := f.c.ByID(f.Stream.ID(i))
			if err != nil {
				return err
			}
			_, err = corpus.Decode(m.Body)
			return err
		}
		return measure.Lane{
			Name: f.Engine.Name,
			Before: func() error {
				turn++
				random := rand.New(rand.NewPCG(seed, turn))
				at = at[:0]
				for range e.ops(500) {
					at = append(at, random.Int64N(n))
				}
				return warm(f, e.plan(), len(at), func(i int) error { return find(at[i]) })
			},
			Turn: func(t *measure.Turn) error {
				for _, i := range at {
					if t.Over() {
						break
					}
					if err := t.Time(func() error { return find(i) }); err != nil {
						return err
					}
				}
				return nil
			},
			After: f.Close,
		}
	})
	if err != nil {
		return nil, err
	}
	r.atMost(1, value, "p50 / ", engine.Ours, sqlites...)
	return []*Result{r}, e.explain(r, ours)
}
