package rows

import (
	"context"
	"slices"

	"github.com/ctxdir/ctxdir/bench/engine"
)

// idle is a process that does nothing: what the programs themselves take.
const idle = "a process that does nothing"

// memoryRow resumes and appends in a large context, in a process that does nothing else.
func memoryRow(ctx context.Context, e *Env) ([]*Result, error) {
	const appends = 1_000
	size := int64(1 << 30)
	if e.Quick {
		size = 10 << 20
	}
	n := min(size/int64(e.Corpus.Mean()), e.Scale)
	r := &Result{
		Row:  "peak memory: resume and append",
		At:   Count(n*int64(e.Corpus.Mean())>>20) + " MiB",
		Unit: Bytes,
		Goal: "≤ 32 MiB",
		Notes: []string{
			"A separate process opens the context (" + Count(n) + " messages), loads the last 50, decodes them, appends " + Count(appends) +
				" durably, and seals what is due. The figure is the peak of resident memory, pages of mapped files included (bbolt maps its file).",
		},
	}
	if err := e.Corpus.WriteFile(e.bodies(), 64); err != nil {
		return nil, err
	}
	jobs := []job{{Kind: "idle", Corpus: e.bodies()}}
	names := []string{idle}
	for _, eng := range e.able(n) {
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		count := e.ops(appends)
		if eng.Largest > 0 {
			count = min(count, few)
		}
		jobs = append(jobs, job{Kind: "memory", Engine: eng.Name, Dir: f.Dir, Context: f.ID, Corpus: e.bodies(), Count: count})
		names = append(names, eng.Name)
	}
	rounds := min(e.Rounds, 3)
	for i, j := range jobs {
		var peaks []float64
		for k := range rounds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			j.Seed = seed + uint64(k+1)<<40
			out, err := j.alone()
			if err != nil {
				return nil, err
			}
			peaks = append(peaks, float64(out.PeakRSS))
		}
		r.Cells = append(r.Cells, &Cell{Name: names[i], Value: median(peaks), N: rounds, Rounds: peaks})
	}
	r.Checks = append(r.Checks, Check{What: "peak", Value: r.Cell(engine.Ours).Value, Limit: 32 << 20, Unit: "bytes"})
	return []*Result{r}, nil
}

// remembering is the job of the process whose memory is measured.
func (j *job) remembering() (func(*outcome) error, error) {
	f, err := j.fixture()
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return func(*outcome) error {
		if err := f.Open(engine.Full); err != nil {
			return err
		}
		ms, err := f.c.Last(resumed)
		if err != nil {
			return err
		}
		if err := decode(ms); err != nil {
			return err
		}
		for range j.Count {
			if err := f.Append(); err != nil {
				return err
			}
		}
		if err := f.Settle(); err != nil {
			return err
		}
		return f.Close()
	}, nil
}

func median(vs []float64) float64 {
	ds := make([]float64, len(vs))
	copy(ds, vs)
	slices.Sort(ds)
	return ds[len(ds)/2]
}
