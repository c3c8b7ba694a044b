package rows

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

const (
	goroutines = 8
	processes  = 4
)

// sharedAppender is a Context with a way of its own to append from several goroutines.
type sharedAppender interface {
	AppendShared(m engine.Message, goroutines int) error
}

// goroutinesRow has several goroutines append to one context through one handle.
func goroutinesRow(ctx context.Context, e *Env) ([]*Result, error) {
	return e.concurrent(ctx, &Result{
		Row: fmt.Sprintf("%d goroutines appending durably", goroutines),
		Notes: []string{
			"The goroutines share one handle. If goroutines cannot share an engine's handle, a mutex guards it. " +
				"bbolt batches concurrent appends.",
		},
	}, false)
}

// processesRow has several processes append to one context.
func processesRow(ctx context.Context, e *Env) ([]*Result, error) {
	return e.concurrent(ctx, &Result{Row: fmt.Sprintf("%d processes appending durably", processes)}, true)
}

func (e *Env) concurrent(ctx context.Context, r *Result, apart bool) ([]*Result, error) {
	n := e.size(10_000)
	r.At, r.Unit, r.Goal = Count(n), PerSecond, "throughput ≥ 2 × SQLite"
	if apart {
		r.Goal = "throughput ≥ 1.2 × SQLite; p99 ≤ 3 ×; p99.9 ≤ 1 ×"
	}
	var lanes []measure.Lane
	var ours *Fixture
	if err := e.Corpus.WriteFile(e.bodies(), 256); err != nil {
		return nil, err
	}
	for _, eng := range e.able(n) {
		if apart && eng.Alone != "" {
			r.Notes = append(r.Notes, eng.Name+" is left out: "+eng.Alone+".")
			continue
		}
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if eng.Name == engine.Ours {
			ours = f
		}
		lane := e.goroutinesLane(f)
		if apart {
			lane = e.processesLane(f)
		}
		lanes = append(lanes, lane)
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		c := cellOf(lanes[k].Name, s)
		c.Value, c.Rounds = s.MedianRate(), s.Rates
		r.Cells = append(r.Cells, c)
	}
	if apart {
		r.atLeast(1.2, value, "throughput / ", engine.Ours, sqlites...)
		r.atMost(3, p99, "p99 / ", engine.Ours, sqlites...)
		r.atMost(1, p999, "p99.9 / ", engine.Ours, sqlites...)
		return []*Result{r}, e.explain(r, here(e.appendJobs(ours)))
	}
	r.atLeast(2, value, "throughput / ", engine.Ours, sqlites...)
	return []*Result{r}, e.explain(r, lanes[0])
}

func (e *Env) goroutinesLane(f *Fixture) measure.Lane {
	each := e.ops(250)
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error {
			if err := f.Open(engine.Full); err != nil {
				return err
			}
			if err := f.Append(); err != nil {
				return err
			}
			return f.Settle()
		},
		Turn: func(t *measure.Turn) error {
			appendOne := appender(f)
			from := f.N
			var next, failed atomic.Int64
			var group sync.WaitGroup
			times := make([][]time.Duration, goroutines)
			start := time.Now()
			deadline := start.Add(e.plan().Turn)
			for g := range goroutines {
				group.Go(func() {
					for k := range each {
						if k > 0 && time.Now().After(deadline) {
							return
						}
						m := f.Message(from + next.Add(1) - 1)
						began := time.Now()
						err := appendOne(m)
						times[g] = append(times[g], time.Since(began))
						if err != nil {
							failed.Add(1)
						}
					}
				})
			}
			group.Wait()
			took := time.Since(start)
			done := next.Load()
			t.Rate(int(done-failed.Load()), took)
			for _, ds := range times {
				for _, d := range ds {
					t.Add(d)
				}
			}
			f.N += done
			t.Failed(int(failed.Load()), nil)
			return f.verify(t, from+done-failed.Load())
		},
		After: f.Settle,
	}
}

// appender returns how several goroutines append.
func appender(f *Fixture) func(engine.Message) error {
	if c, ok := f.c.(sharedAppender); ok {
		return func(m engine.Message) error { return c.AppendShared(m, goroutines) }
	}
	if f.Engine.Largest == 0 {
		return f.c.Append
	}
	var mu sync.Mutex
	return func(m engine.Message) error {
		mu.Lock()
		defer mu.Unlock()
		return f.c.Append(m)
	}
}

// verify counts messages that were acknowledged and are not there as errors.
func (f *Fixture) verify(t *measure.Turn, want int64) error {
	infos, err := f.c.Branches()
	if err != nil {
		return err
	}
	for _, b := range infos {
		if b.Name == engine.Main && b.Messages != want {
			t.Failed(int(max(want-b.Messages, b.Messages-want)), fmt.Errorf("%d messages, %d were acknowledged", b.Messages, want))
		}
	}
	f.N = want
	return nil
}

// bodies is a file with messages for workers, who are to hold no more than they need.
func (e *Env) bodies() string { return filepath.Join(e.Dir, "bodies.jsonl") }

// appendJobs are what the processes do. Each time theirs are other messages.
func (e *Env) appendJobs(f *Fixture) []job {
	var jobs []job
	for range processes {
		e.made++
		jobs = append(jobs, job{
			Kind: "append", Engine: f.Engine.Name, Dir: f.Dir, Context: f.ID, Corpus: e.bodies(),
			Seed: uint64(e.made) << 32, Count: e.ops(500),
		})
	}
	return jobs
}

func (e *Env) processesLane(f *Fixture) measure.Lane {
	var ws []*worker
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error {
			if err := f.Close(); err != nil {
				return err
			}
			ws = nil
			for _, j := range e.appendJobs(f) {
				w, err := j.start()
				if err != nil {
					return err
				}
				ws = append(ws, w)
			}
			return nil
		},
		Turn: func(t *measure.Turn) error {
			for _, w := range ws {
				if err := w.run(); err != nil {
					return err
				}
			}
			var first, last time.Time
			done := 0
			for _, w := range ws {
				out, err := w.wait()
				if err != nil {
					return err
				}
				if first.IsZero() || out.Start.Before(first) {
					first = out.Start
				}
				if out.End.After(last) {
					last = out.End
				}
				for _, d := range out.Times {
					t.Add(d)
				}
				done += len(out.Times) - out.Errors
				if out.Errors > 0 {
					t.Failed(out.Errors, fmt.Errorf("%s", out.Err))
				}
			}
			t.Rate(done, last.Sub(first))
			if err := f.Open(engine.Full); err != nil {
				return err
			}
			return f.verify(t, f.N+int64(done))
		},
		After: f.Close,
	}
}
