package rows

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/google/uuid"
)

// eraseRow erases single messages of a long context.
func eraseRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(100_000)
	r := &Result{
		Row: "erase one message", At: Count(n), Unit: Nanoseconds, Goal: "≤ 0.5 s",
		Notes: []string{"The erase makes the segment of the message anew, and searches the store for files that are not its own and " +
			"repeat the message."},
	}
	f, err := e.Shared(e.Engines[0], n)
	if err != nil {
		return nil, err
	}
	o, err := openAlone(ctx, f.Dir)
	if err != nil {
		return nil, err
	}
	defer o.close()
	order := rand.New(rand.NewPCG(seed, 2)).Perm(int(n))
	lane := measure.Lane{
		Name: engine.Ours,
		Turn: func(t *measure.Turn) error {
			return t.Repeat(e.ops(10), func() error {
				if len(order) == 0 {
					return fmt.Errorf("all %d messages are erased", n)
				}
				id := f.Stream.ID(int64(order[0]))
				order = order[1:]
				_, err := o.s.Erase(ctx, o.c.ID(), []uuid.UUID{id}, ctxdir.EraseOptions{Shared: true})
				return err
			})
		},
	}
	samples, err := measure.Run(ctx, e.plan(), []measure.Lane{lane})
	if err != nil {
		return nil, err
	}
	cell := cellOf(engine.Ours, samples[0])
	r.Cells = append(r.Cells, cell)
	r.Checks = append(r.Checks, Check{What: "p50", Value: cell.Value, Limit: 500e6, Unit: string(Nanoseconds)})
	return []*Result{r}, e.explain(r, lane)
}
