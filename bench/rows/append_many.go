package rows

import (
	"context"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// manyRow appends so much that what an engine leaves for later has to be done meanwhile, and waits for all of it.
func manyRow(ctx context.Context, e *Env) ([]*Result, error) {
	count := min(e.size(10_000)*2, e.Scale/4)
	r := &Result{
		Row: "durable appends one by one, and a flush", At: Count(count), Unit: Nanoseconds,
		Goal: "≤ 1.3 × SQLite",
		Notes: []string{
			"One operation is all appends, and the wait until everything that follows them is done: message files are made behind the " +
				"commits, so an append alone could look faster than the library can go on for long.",
		},
	}
	var lanes []measure.Lane
	for _, eng := range e.named(engine.Ours, engine.Modernc, engine.Mattn, engine.Bolt) {
		f, err := e.Fresh(eng, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lanes = append(lanes, measure.Lane{
			Name:   eng.Name,
			Before: func() error { return f.Open(engine.Full) },
			Turn: func(t *measure.Turn) error {
				return t.Time(func() error {
					for range count {
						if err := f.Append(); err != nil {
							return err
						}
					}
					return f.Settle()
				})
			},
		})
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.atMost(1.3, value, "p50 / ", engine.Ours, sqlites...)
	return []*Result{r}, e.explain(r, lanes[0])
}
