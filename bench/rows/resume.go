package rows

import (
	"context"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
)

const (
	resumed     = 50
	storeIsOpen = ", store open"
	floorResume = "floor: 50 plain file reads + decoding"
)

// resumeRow opens everything anew and loads the newest messages: once decoded, once as they are.
func resumeRow(ctx context.Context, e *Env) ([]*Result, error) {
	decoded, err := e.resume(ctx, true)
	if err != nil {
		return nil, err
	}
	raw, err := e.resume(ctx, false)
	return append(decoded, raw...), err
}

func (e *Env) resume(ctx context.Context, decoding bool) ([]*Result, error) {
	name, goal := "resume: open + last 50 decoded, cold handle", "≤ 0.6 × SQLite open + query; flat"
	if !decoding {
		name, goal = "resume: open + last 50, bodies not decoded", ""
	}
	var results []*Result
	var lanes []measure.Lane
	var at []int
	for i, n := range e.sizes(1_000, 100_000, 1_000_000) {
		results = append(results, &Result{Row: name, At: Count(n), Goal: goal, Unit: Nanoseconds})
		for _, eng := range e.reading(n) {
			f, err := e.Unchanged(eng, n)
			if err != nil {
				return nil, err
			}
			lanes, at = append(lanes, e.resumeLane(f, decoding, true)), append(at, i)
			switch eng.Name {
			case engine.Ours:
				lanes, at = append(lanes, e.resumeLane(f, decoding, false)), append(at, i)
				if decoding {
					lanes, at = append(lanes, e.bareResumeLane(f)), append(at, i)
				}
			case engine.Modernc, engine.Mattn:
				lanes, at = append(lanes, e.resumeLane(f, decoding, false)), append(at, i)
			}
		}
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		results[at[k]].Cells = append(results[at[k]].Cells, cellOf(lanes[k].Name, s))
	}
	if !decoding {
		return results, nil
	}
	for _, r := range results {
		r.atMost(0.6, value, "p50 / ", engine.Ours, sqlites...)
	}
	flat(results, 1.1, engine.Ours)
	results[0].Notes = append(results[0].Notes,
		"Each engine opens its store and the context, loads the newest 50 messages and decodes them. The store is closed "+
			"before each measurement, and the time excludes closing. With \"store open\", the store is open and warm, and only "+
			"the context's handle is new. All engines use the same decoder. All store long texts in their messages, except in the "+
			"lane \""+engine.Blobs+"\".")
	for i, r := range results {
		for k, lane := range lanes {
			if at[k] == i && lane.Name == engine.Ours {
				if err := e.explain(r, lane); err != nil {
					return nil, err
				}
			}
		}
	}
	return results, nil
}

func (e *Env) resumeLane(f *Fixture, decoding, everything bool) measure.Lane {
	once := func() error {
		if err := f.Open(engine.Full); err != nil {
			return err
		}
		ms, err := f.c.Last(resumed)
		if err == nil && decoding {
			err = decode(ms)
		}
		return err
	}
	shut := f.Close
	name := f.Engine.Name
	if !everything {
		name += storeIsOpen
		shut = f.CloseContext
	}
	return measure.Lane{
		Name: name,
		Before: func() error { // warms the page cache
			if err := once(); err != nil {
				return err
			}
			return shut()
		},
		Turn: func(t *measure.Turn) error {
			for range e.ops(100) {
				if t.Over() {
					break
				}
				if err := t.Time(once); err != nil {
					return err
				}
				if err := shut(); err != nil {
					return err
				}
			}
			return nil
		},
		After: f.Close,
	}
}

// bareResumeLane reads the newest message files in the order they are wanted, one after the other.
func (e *Env) bareResumeLane(f *Fixture) measure.Lane {
	var buf []byte
	return measure.Lane{
		Name: floorResume,
		Turn: func(t *measure.Turn) error {
			for range e.ops(100) {
				err := t.Time(func() error {
					for i := max(f.N-resumed, 0); i < f.N; i++ {
						var err error
						if buf, err = floor.Read(f.messageFile(i), buf); err != nil {
							return err
						}
						if _, err := corpus.Decode(buf); err != nil {
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
