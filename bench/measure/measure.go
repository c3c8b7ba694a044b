// Package measure runs several engines in turn, A B C A B C, so that whatever changes on a machine while a
// benchmark runs changes for all of them.
package measure

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/ctxdir/ctxdir/bench/machine"
)

// Lane is one of the things that a row compares.
type Lane struct {
	Name string
	// Before prepares a turn; its time does not count.
	Before func() error
	// Turn does the work, and records what it finds.
	Turn func(*Turn) error
	// After ends a turn: it waits for what goes on in the background. Its time is reported apart.
	After func() error
}

// Turn is one lane's part of one round.
type Turn struct {
	deadline time.Time
	samples  *Samples
	times    []time.Duration
	first    bool
}

// Over reports whether the turn has had its time. Slow engines do fewer operations in a turn, at least one.
func (t *Turn) Over() bool { return !t.first && time.Now().After(t.deadline) }

// Time runs and times one operation.
func (t *Turn) Time(op func() error) error {
	t.first = false
	start := time.Now()
	err := op()
	t.Add(time.Since(start))
	return err
}

// Add records an operation that was timed elsewhere.
func (t *Turn) Add(d time.Duration) { t.times = append(t.times, d) }

// Repeat times so many operations, or as many as the turn has time for.
func (t *Turn) Repeat(ops int, op func() error) error {
	for range ops {
		if t.Over() {
			break
		}
		if err := t.Time(op); err != nil {
			return err
		}
	}
	return nil
}

// Rate records how many operations were done in what time, by several at once.
func (t *Turn) Rate(n int, took time.Duration) {
	t.samples.Rates = append(t.samples.Rates, float64(n)/took.Seconds())
}

// Failed counts operations that failed.
func (t *Turn) Failed(n int, err error) {
	t.samples.Errors += n
	if err != nil && t.samples.Err == "" {
		t.samples.Err = err.Error()
	}
}

// Samples is what a lane's turns found.
type Samples struct {
	Times  []time.Duration // of every operation
	Rounds []time.Duration // the median of each turn
	Rates  []float64       // operations per second, of each turn
	Errors int
	Err    string          // the first error
	Settle []time.Duration // how long each After took
	CPU    time.Duration   // processor time of all turns
	Wall   time.Duration   // of all turns
}

// Median is the median of all operations' times.
func (s *Samples) Median() time.Duration { return Quantile(s.Times, 0.5) }

// Mean is their mean.
func (s *Samples) Mean() time.Duration {
	if len(s.Times) == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range s.Times {
		sum += d
	}
	return sum / time.Duration(len(s.Times))
}

// MedianRate is the median of the turns' rates.
func (s *Samples) MedianRate() float64 {
	if len(s.Rates) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.Rates))
	return sorted[len(sorted)/2]
}

// Quantile is the value below which the share q of the durations lies.
func Quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ds))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Plan says how long a row may take.
type Plan struct {
	Rounds int
	// Turn is how long a lane may go on in one turn; it does at least one operation.
	Turn time.Duration
	// Total is how long a lane may take in all; after that it sits out the rounds that are left.
	Total time.Duration
	// Quiet is called before each turn: it flushes what the turn before left to be written.
	Quiet func() error
}

// turnLabel marks, in a profile, what a turn does.
const turnLabel = "turn"

// Run runs the lanes' turns, round after round; each round begins with another lane. It returns the samples in
// the order of the lanes.
func Run(ctx context.Context, p Plan, lanes []Lane) ([]*Samples, error) {
	samples := make([]*Samples, len(lanes))
	spent := make([]time.Duration, len(lanes))
	for i := range samples {
		samples[i] = &Samples{}
	}
	for round := range p.Rounds {
		for k := range lanes {
			i := (k + round) % len(lanes)
			if round > 0 && spent[i] > p.Total {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			start := time.Now()
			if err := p.turn(lanes[i], samples[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", lanes[i].Name, err)
			}
			spent[i] += time.Since(start)
		}
	}
	return samples, nil
}

func (p Plan) turn(l Lane, s *Samples) error {
	if l.Before != nil {
		if err := l.Before(); err != nil {
			return err
		}
	}
	if p.Quiet != nil {
		if err := p.Quiet(); err != nil {
			return err
		}
	}
	runtime.GC() // nobody pays for another one's garbage
	t := &Turn{deadline: time.Now().Add(p.Turn), samples: s, first: true}
	cpu, start := machine.CPUTime(), time.Now()
	var err error
	pprof.Do(context.Background(), pprof.Labels(turnLabel, l.Name), func(context.Context) { err = l.Turn(t) })
	s.Wall += time.Since(start)
	s.CPU += machine.CPUTime() - cpu
	if err != nil {
		return err
	}
	s.Times = append(s.Times, t.times...)
	if len(t.times) > 0 {
		s.Rounds = append(s.Rounds, Quantile(t.times, 0.5))
	}
	if l.After == nil {
		return nil
	}
	start = time.Now()
	err = l.After()
	s.Settle = append(s.Settle, time.Since(start))
	return err
}
