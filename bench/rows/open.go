package rows

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// openRow opens a context in an open store and lists its branches with their sizes.
func openRow(ctx context.Context, e *Env) ([]*Result, error) {
	var results []*Result
	var lanes []measure.Lane
	var at []int
	for i, n := range e.sizes(1_000, 1_000_000) {
		r := &Result{Row: "open a context, list its branches and sizes", At: Count(n), Unit: Nanoseconds,
			Goal: "≤ 3 × a plain read of what it needs; flat"}
		results = append(results, r)
		for _, eng := range e.able(n) {
			f, err := e.Unchanged(eng, n)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			lanes, at = append(lanes, e.openLane(f)), append(at, i)
			if eng.Name == engine.Ours {
				lanes, at = append(lanes, e.bareOpenLane(f)), append(at, i)
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
	for i, r := range results {
		r.atMost(3, value, "p50 / ", engine.Ours, floorRead)
		f, err := e.Unchanged(e.Engines[0], e.sizes(1_000, 1_000_000)[i])
		if err != nil {
			return nil, err
		}
		bytes, objects, err := e.openAllocations(f)
		if err != nil {
			return nil, err
		}
		r.Notes = append(r.Notes, "ctxdir allocates "+Count(bytes)+" bytes in "+Count(objects)+" objects.")
	}
	flat(results, 1.1, engine.Ours)
	results[0].Notes = append(results[0].Notes, "\""+floorRead+"\" lists the folder of the context and the one of its segments, and "+
		"reads metadata.json and the logs, with the blank space at their end, as an open does. No segment is read.")
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

func (e *Env) openLane(f *Fixture) measure.Lane {
	return measure.Lane{
		Name:   f.Engine.Name,
		Before: func() error { return prepareOpen(f) },
		Turn: func(t *measure.Turn) error {
			for range e.ops(300) {
				if t.Over() {
					break
				}
				if err := t.Time(func() error { return openOnce(f) }); err != nil {
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

// prepareOpen leaves the store open and the context closed, everything read once.
func prepareOpen(f *Fixture) error {
	if err := f.Open(engine.Full); err != nil {
		return err
	}
	if _, err := f.c.Branches(); err != nil {
		return err
	}
	return f.CloseContext()
}

func openOnce(f *Fixture) error {
	if err := f.Open(engine.Full); err != nil {
		return err
	}
	_, err := f.c.Branches()
	return err
}

// bareOpenLane lists the logs and segments, and reads the logs and metadata.json.
func (e *Env) bareOpenLane(f *Fixture) measure.Lane {
	dir := filepath.Join(f.Dir, f.ID)
	segments := filepath.Join(dir, "segments")
	var paths []string
	names, buf := make([]byte, 8<<10), []byte{}
	return measure.Lane{
		Name: floorRead,
		Before: func() (err error) {
			paths, err = filepath.Glob(filepath.Join(dir, "log-*.jsonl"))
			paths = append(paths, filepath.Join(dir, "metadata.json"))
			return err
		},
		Turn: func(t *measure.Turn) error {
			return t.Repeat(e.ops(300), func() error {
				if err := floor.List(dir, names); err != nil {
					return err
				}
				if err := floor.List(segments, names); err != nil {
					return err
				}
				var err error
				for i := 0; i < len(paths) && err == nil; i++ {
					buf, err = floor.Read(paths[i], buf)
				}
				return err
			})
		},
	}
}

// openAllocations is what one opening allocates.
func (e *Env) openAllocations(f *Fixture) (bytes, objects int64, err error) {
	if err := prepareOpen(f); err != nil {
		return 0, 0, err
	}
	const times = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if err := openOnce(f); err != nil {
			return 0, 0, err
		}
		if err := f.CloseContext(); err != nil {
			return 0, 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc-before.TotalAlloc) / times, int64(after.Mallocs-before.Mallocs) / times, f.Close()
}
