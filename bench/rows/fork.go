package rows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
)

const floorReplace = "floor: durable metadata write"

// forkRow forks a branch in its middle.
func forkRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(100_000)
	r := &Result{
		Row:  "fork",
		At:   Count(n),
		Unit: Nanoseconds,
		Goal: "≤ 1 durable metadata write; 0 messages copied",
		Notes: []string{
			"The floor writes the metadata.json that ctxdir has at the beginning of the turn: temporary file, fsync, rename, " +
				"fsync of the folder. ctxdir's metadata.json grows by a branch with each fork. JSON Lines and \"one document\" " +
				"copy the messages before the fork; \"file per message\" copies its index.",
		},
	}
	var lanes []measure.Lane
	var ours *Fixture
	for _, eng := range e.able(n) {
		f, err := e.Shared(eng, n)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lanes = append(lanes, e.forkLane(f, n/2))
		if eng.Name == engine.Ours {
			ours = f
			lane, err := e.bareForkLane(f)
			if err != nil {
				return nil, err
			}
			lanes = append(lanes, lane)
		}
	}
	before, err := ours.messageFiles()
	if err != nil {
		return nil, err
	}
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return nil, err
	}
	after, err := ours.messageFiles()
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.atMost(1, value, "p50 / ", engine.Ours, floorReplace)
	r.Checks = append(r.Checks, Check{What: "messages copied", Value: float64(after - before), Unit: "messages"})
	return []*Result{r}, e.explain(r, lanes[0])
}

// messageFiles counts the message files of ours.
func (f *Fixture) messageFiles() (int, error) {
	files, err := filepath.Glob(filepath.Join(f.Dir, f.ID, "messages", "*", "*.json"))
	return len(files), err
}

func (e *Env) forkLane(f *Fixture, at int64) measure.Lane {
	count, ops := 0, 10
	if f.Engine.Largest > 0 || f.Engine.Name == engine.Lines {
		ops = 2 // each copies, and nothing is deleted before the end
	}
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error {
			if err := f.Open(engine.Full); err != nil {
				return err
			}
			_, err := f.c.Last(1)
			return err
		},
		Turn: func(t *measure.Turn) error {
			for range ops {
				if t.Over() {
					break
				}
				count++
				name := fmt.Sprintf("fork-%d", count)
				if err := t.Time(func() error { return f.c.Fork(name, at) }); err != nil {
					return err
				}
			}
			return nil
		},
		After: f.Settle,
	}
}

func (e *Env) bareForkLane(f *Fixture) (measure.Lane, error) {
	dir, err := e.folder("floor")
	if err != nil {
		return measure.Lane{}, err
	}
	var data []byte
	return measure.Lane{
		Name: floorReplace,
		Before: func() error {
			var err error
			data, err = os.ReadFile(filepath.Join(f.Dir, f.ID, "metadata.json"))
			return err
		},
		Turn: func(t *measure.Turn) error {
			for range 10 {
				if err := t.Time(func() error { return floor.Replace(dir, "metadata.json", data) }); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}
