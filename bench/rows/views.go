package rows

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// viewsRow opens a context whose views are gone: metadata.json, index.json and all message files.
func viewsRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(1_000_000)
	r := &Result{
		Row: "open without metadata.json, index.json and messages/", At: Count(n), Unit: Nanoseconds, Goal: "≤ 50 ms",
		Notes: []string{"As \"open a context\", with the views moved out of the folder before."},
	}
	f, err := e.Unchanged(e.Engines[0], n)
	if err != nil {
		return nil, err
	}
	aside, err := e.folder("views")
	if err != nil {
		return nil, err
	}
	lane := e.openLane(f)
	before, after := lane.Before, lane.After
	lane.Before = func() error { return errors.Join(moveViews(filepath.Join(f.Dir, f.ID), aside), before()) }
	lane.After = func() error { return errors.Join(after(), moveViews(aside, filepath.Join(f.Dir, f.ID))) }
	samples, err := measure.Run(ctx, e.plan(), []measure.Lane{lane})
	if err != nil {
		return nil, err
	}
	cell := cellOf(engine.Ours, samples[0])
	r.Cells = append(r.Cells, cell)
	r.Checks = append(r.Checks, Check{What: "p50", Value: cell.Value, Limit: 50e6, Unit: string(Nanoseconds)})
	return []*Result{r}, e.explain(r, lane)
}

// moveViews moves the views of a context from one folder to another: nothing is deleted while rows run.
func moveViews(from, to string) error {
	for _, name := range []string{"metadata.json", "index.json", "messages"} {
		err := os.Rename(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
