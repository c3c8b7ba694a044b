package rows

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/bench/corpus"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// bareLoop is the reader of message files without an engine.
const bareLoop = "floor: the same loop over plain files"

// readersRow reads ranges with one reader per core, on one core and on two.
func readersRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(10_000)
	var fixtures []*Fixture
	for _, eng := range e.named(engine.Ours, engine.Modernc, engine.Mattn) {
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		fixtures = append(fixtures, f)
	}
	bare := *fixtures[0]
	cores := []int{1, 2}
	if runtime.NumCPU() < 2 {
		cores = cores[:1]
	}
	var results []*Result
	var lanes []measure.Lane
	var at []int
	for i, k := range cores {
		results = append(results, &Result{Row: "concurrent readers", At: fmt.Sprintf("%d core(s), %s", k, Count(n)), Unit: PerSecond,
			Goal: "scales within 10 % of the same loop over plain files"})
		for _, f := range fixtures {
			lanes, at = append(lanes, e.readersLane(f, f.Engine.Name, k)), append(at, i)
		}
		lanes, at = append(lanes, e.readersLane(&bare, bareLoop, k)), append(at, i)
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		c := cellOf(lanes[k].Name, s)
		c.Value, c.Rounds = s.MedianRate(), s.Rates
		results[at[k]].Cells = append(results[at[k]].Cells, c)
	}
	results[0].Notes = append(results[0].Notes,
		"One process is bound to the cores, and runs one reader on each core. Each reader has a separate handle (SQLite: a "+
			"connection). It reads and decodes random ranges of 50. The figure is messages per second. The reader reopens its "+
			"handle when it has read every range once, so no cache serves messages.")
	if len(results) == 2 {
		scale := func(name string) float64 { return results[1].Cell(name).Value / results[0].Cell(name).Value }
		ours, loop := scale(engine.Ours), scale(bareLoop)
		results[1].Checks = append(results[1].Checks, Check{What: "scaling / plain loop's", Value: ours / loop, Limit: 0.9, AtLeast: true})
		results[1].Notes = append(results[1].Notes, fmt.Sprintf(
			"With two cores instead of one, ctxdir is %.2f times as fast, and the loop over plain files %.2f times.", ours, loop))
		j := e.readJob(fixtures[0], engine.Ours, 2)
		if err := e.explain(results[1], here([]job{j})); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (e *Env) readersLane(f *Fixture, name string, cores int) measure.Lane {
	return measure.Lane{
		Name: name,
		Turn: func(t *measure.Turn) error {
			return machine.OnCores(cores, func() error {
				out, err := e.readJob(f, name, cores).alone()
				if err != nil {
					return err
				}
				t.Rate(int(out.Done), out.End.Sub(out.Start))
				return nil
			})
		},
	}
}

func (e *Env) readJob(f *Fixture, name string, readers int) job {
	length := time.Second
	if e.Quick {
		length = 100 * time.Millisecond
	}
	return job{Kind: "read", Engine: name, Dir: f.Dir, Context: f.ID, Seed: seed, N: f.N, Readers: readers, For: length}
}

// reading is the job of a process with several readers.
func (j *job) reading() (func(*outcome) error, error) {
	var readers []func(from int64) error
	var renew []func() error
	for range j.Readers {
		if j.Engine == bareLoop {
			f := &Fixture{Dir: j.Dir, ID: j.Context, Stream: corpus.Fixed("", []byte("{}")).Stream(j.Seed)}
			readers, renew = append(readers, f.readBare), append(renew, func() error { return nil })
			continue
		}
		f, err := j.fixture()
		if err != nil {
			return nil, err
		}
		readers = append(readers, func(from int64) error {
			ms, err := f.c.Range(from, from+resumed)
			if err != nil {
				return err
			}
			return decode(ms)
		})
		renew = append(renew, func() error {
			if err := f.CloseContext(); err != nil {
				return err
			}
			return f.Open(engine.Full)
		})
	}
	return func(out *outcome) error {
		var done atomic.Int64
		errs := make([]error, j.Readers)
		var group sync.WaitGroup
		deadline := time.Now().Add(j.For)
		for k := range readers {
			group.Go(func() {
				for errs[k] == nil {
					for _, from := range permuted(j.N/resumed, uint64(k)) {
						if time.Now().After(deadline) {
							return
						}
						if errs[k] = readers[k](from * resumed); errs[k] != nil {
							return
						}
						done.Add(resumed)
					}
					errs[k] = renew[k]()
				}
			})
		}
		group.Wait()
		out.Done = done.Load()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// readBare reads and decodes message files.
func (f *Fixture) readBare(from int64) error {
	var buf []byte
	for i := from; i < from+resumed; i++ {
		var err error
		if buf, err = floor.Read(f.messageFile(i), buf); err != nil {
			return err
		}
		if _, err := corpus.Decode(buf); err != nil {
			return err
		}
	}
	return nil
}
