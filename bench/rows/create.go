package rows

import (
	"context"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// createRow creates contexts of one message.
func createRow(ctx context.Context, e *Env) ([]*Result, error) {
	r := &Result{
		Row:  "create a context, append its first message, close",
		At:   "–",
		Unit: Nanoseconds,
		Goal: "≤ 2.5 × SQLite",
		Notes: []string{
			"The store is open. Both the context and the message are durable at the end. SQLite adds the rows of the context, the " +
				"branch and the message in one transaction.",
		},
	}
	var lanes []measure.Lane
	for _, eng := range e.named(labelled...) {
		f, err := e.Fresh(eng, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lanes = append(lanes, e.createLane(f))
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.atMost(2.5, value, "p50 / ", engine.Ours, sqlites...)
	return []*Result{r}, e.explain(r, lanes[0])
}

func (e *Env) createLane(f *Fixture) measure.Lane {
	start := func() error {
		m := f.Message(f.N)
		f.N++
		return f.store.(engine.Starter).Start("benchmark", m)
	}
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error {
			if err := f.Open(engine.Full); err != nil {
				return err
			}
			return start() // prepares statements
		},
		Turn: func(t *measure.Turn) error { return t.Repeat(e.ops(100), start) },
	}
}
