package rows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// archiveRow archives a store of many contexts, and then collects.
func archiveRow(ctx context.Context, e *Env) ([]*Result, error) {
	count, each := 145, int64(387)
	if e.Quick {
		count, each = 10, 20
	}
	at := fmt.Sprintf("%s in %d contexts", Count(int64(count)*each), count)
	archived := &Result{Row: "archive", At: at, Unit: Nanoseconds, Goal: "≤ 2 s",
		Notes: []string{"Each round archives another store, whose contexts are sealed and closed."}}
	collected := &Result{Row: "collection after an archive", At: at, Unit: Nanoseconds, Goal: "≤ 1 s"}
	var s *ctxdir.Store
	var collections []time.Duration
	lane := measure.Lane{
		Name: engine.Ours,
		Before: func() error {
			f, err := e.Fresh(e.Engines[0], 0)
			if err != nil {
				return err
			}
			if _, err := f.fillMany(count, each, e.Corpus); err != nil {
				return err
			}
			s, err = ctxdir.Open(f.Dir)
			return err
		},
		Turn: func(t *measure.Turn) error {
			return t.Time(func() error {
				_, err := s.Archive(ctx, ctxdir.ArchiveOptions{All: true})
				return err
			})
		},
		After: func() error {
			start := time.Now()
			_, err := s.Collect(ctx, ctxdir.CollectOptions{All: true})
			collections = append(collections, time.Since(start))
			return errors.Join(err, s.Close())
		},
	}
	p := e.plan()
	p.Total = time.Hour // each round counts, and takes longer than its turn
	samples, err := measure.Run(ctx, p, []measure.Lane{lane})
	if err != nil {
		return nil, err
	}
	for r, s := range map[*Result]*measure.Samples{archived: samples[0], collected: {Times: collections, Rounds: collections}} {
		cell := cellOf(engine.Ours, s)
		cell.Settle = 0
		limit := 2e9
		if r == collected {
			limit = 1e9
		}
		r.Cells = append(r.Cells, cell)
		r.Checks = append(r.Checks, Check{What: "p50", Value: cell.Value, Limit: limit, Unit: string(Nanoseconds)})
	}
	return []*Result{archived, collected}, e.explain(archived, lane)
}
