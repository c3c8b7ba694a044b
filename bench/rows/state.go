package rows

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

const appendAlone = ", append alone"

// stateRow appends a message together with the state of the context, beside the same append without state.
func stateRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(10_000)
	r := &Result{
		Row:  "durable append with state, one commit",
		At:   Count(n),
		Unit: Nanoseconds,
		Goal: "≤ 1.15 × the append alone",
		Notes: []string{
			"The state is an object of about 150 bytes, and another one in each commit. SQLite inserts the message and updates the row " +
				"of the context in one transaction.",
		},
	}
	var lanes []measure.Lane
	for _, eng := range e.named(labelled...) {
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		alone := e.appendLane(f, 0, engine.Full)
		alone.Name += appendAlone
		lanes = append(lanes, e.stateLane(f), alone)
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.atMost(1.15, value, "p50 / ", engine.Ours, engine.Ours+appendAlone)
	return []*Result{r}, e.explain(r, lanes[0])
}

func (e *Env) stateLane(f *Fixture) measure.Lane {
	lane := e.appendLane(f, 0, engine.Full)
	lane.Turn = func(t *measure.Turn) error {
		return t.Repeat(e.ops(500), func() error {
			m := f.Message(f.N)
			f.N++
			return f.c.(engine.Changer).AppendWithState(m, stateAt(f.N))
		})
	}
	return lane
}

// stateAt is the state of an agent after n messages.
func stateAt(n int64) []byte {
	return fmt.Appendf(nil, `{"turn":%d,"step":"run the tests","plan":["read the failing test","find the cause","mend it","run the tests"],`+
		`"last":"%016x","tokens":%d}`, n, uint64(n)*0x9e3779b97f4a7c15, n*731)
}
