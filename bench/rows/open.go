package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
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
			Goal: "≤ 3 × a plain read of the same files; flat"}
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
	results[0].Notes = append(results[0].Notes, "\""+floorRead+"\" opens, reads and closes the files that an open has to "+
		"read: metadata.json, index.json, and what is not folded of the journals.")
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

func (e *Env) bareOpenLane(f *Fixture) measure.Lane {
	var paths []string
	var index struct {
		Live   int
		Offset int64 // the records of the journal before it are folded
	}
	var buf []byte
	return measure.Lane{
		Name: floorRead,
		Before: func() error {
			dir := filepath.Join(f.Dir, f.ID)
			paths = []string{filepath.Join(dir, "metadata.json"), filepath.Join(dir, "index.json")}
			b, err := os.ReadFile(paths[1])
			if err != nil {
				return err
			}
			index.Offset = 0
			if err := json.Unmarshal(b, &index); err != nil {
				return err
			}
			for live := index.Live; ; live++ {
				journal := filepath.Join(dir, fmt.Sprintf("journal-%d.jsonl", live))
				if _, err := os.Stat(journal); err != nil {
					return nil
				}
				paths = append(paths, journal)
			}
		},
		Turn: func(t *measure.Turn) error {
			for range e.ops(300) {
				err := t.Time(func() error {
					for i, path := range paths {
						offset := int64(0)
						if i == 2 {
							offset = index.Offset
						}
						var err error
						if buf, err = floor.ReadFrom(path, offset, buf); err != nil {
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
