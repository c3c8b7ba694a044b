package rows

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ctxdir/ctxdir/bench/engine"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
)

const changeGoal = "≤ 1.0 × a row change of SQLite"

// forkRow changes a long context without adding messages: by a fork, a rewind, another name, a label.
func forkRow(ctx context.Context, e *Env) ([]*Result, error) {
	n := e.size(100_000)
	changes := []struct { // forks come last: each adds a branch to the metadata of the context
		row     string
		engines []*engine.Engine
		lane    func(f *Fixture) measure.Lane
		note    string
		grows   bool // its profile would leave thousands of lines or branches in the metadata, for the next to measure
	}{
		{"set a label", e.named(labelled...), e.labelLane,
			"SQLite replaces a row in a table of labels, which has an index by value.", false},
		{"rename a branch", e.named(labelled...), e.renameLane,
			"The branch is that of all messages. SQLite changes a row.", false},
		{"rewind by one message", e.named(labelled...), e.rewindLane,
			"The messages are appended before the turn. SQLite deletes a row. ctxdir keeps the message until a collection.", true},
		{"fork", e.able(n), func(f *Fixture) measure.Lane { return e.forkLane(f, n/2) },
			"ctxdir has some 500 lines by then, one of each rewind. SQLite adds a row. JSON Lines and \"one document\" " +
				"copy the messages before the fork; \"file per message\" copies its index.", true},
	}
	f, err := e.Shared(changes[0].engines[0], n)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var results []*Result
	var later []func() error
	for _, c := range changes {
		r := &Result{Row: c.row, At: Count(n), Unit: Nanoseconds, Goal: changeGoal, Notes: []string{c.note}}
		ours, err := e.change(ctx, r, n, c.engines, c.lane)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
		explain := func() error { return e.explain(r, ours) }
		if c.grows {
			later = append(later, explain)
		} else if err := explain(); err != nil {
			return nil, err
		}
	}
	for _, explain := range later {
		if err := explain(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// change measures a change in the engines' contexts of n messages. It returns the lane of the first engine, ours.
func (e *Env) change(
	ctx context.Context, r *Result, n int64, engines []*engine.Engine, lane func(f *Fixture) measure.Lane,
) (ours measure.Lane, err error) {
	var lanes []measure.Lane
	for _, eng := range engines {
		f, err := e.Shared(eng, n)
		if err != nil {
			return ours, err
		}
		defer f.Close()
		lanes = append(lanes, lane(f))
	}
	bare, err := e.bareChangeLane()
	if err != nil {
		return ours, err
	}
	lanes = append(lanes, bare)
	samples, err := measure.Run(ctx, e.plan(), lanes)
	if err != nil {
		return ours, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	r.Notes = append(r.Notes, fmt.Sprintf("\"%s\" is a pwrite of %d bytes to a preallocated file, and an fdatasync.", floorSync, changeSize))
	r.atMost(1, value, "p50 / ", engine.Ours, sqlites...)
	return lanes[0], nil
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
			return t.Repeat(ops, func() error {
				count++
				return f.c.Fork(fmt.Sprintf("fork-%d", count), at)
			})
		},
		After: f.Settle,
	}
}

// rewindLane removes the messages that it appended before the turn, one by one.
func (e *Env) rewindLane(f *Fixture) measure.Lane {
	turns, left := uint64(0), int64(0)
	return measure.Lane{
		Name: f.Engine.Name,
		Before: func() error {
			if err := f.Open(engine.Full); err != nil {
				return err
			}
			turns++
			s := e.Corpus.Stream(seed + turns<<48) // ids that no other message has
			ms := make([]engine.Message, e.ops(100))
			for i := range ms {
				ms[i] = message(s, int64(i))
			}
			left = int64(len(ms))
			if err := f.c.AppendBatch(ms); err != nil {
				return err
			}
			return f.Settle()
		},
		Turn: func(t *measure.Turn) error {
			return t.Repeat(int(left), func() error {
				left--
				return f.c.(engine.Changer).Rewind(f.N + left)
			})
		},
		After: func() error {
			if left > 0 {
				if err := f.c.(engine.Changer).Rewind(f.N); err != nil {
					return err
				}
			}
			return f.Settle()
		},
	}
}

// renameLane gives the main branch one name after the other, and its own name again after the turn.
func (e *Env) renameLane(f *Fixture) measure.Lane {
	count, name := 0, engine.Main
	rename := func(to string) error {
		err := f.c.(engine.Changer).Rename(name, to)
		name = to
		return err
	}
	return measure.Lane{
		Name:   f.Engine.Name,
		Before: func() error { return f.Open(engine.Full) },
		Turn: func(t *measure.Turn) error {
			return t.Repeat(e.ops(100), func() error {
				count++
				return rename(fmt.Sprintf("name-%d", count))
			})
		},
		After: func() error {
			if err := rename(engine.Main); err != nil {
				return err
			}
			return f.Settle()
		},
	}
}

func (e *Env) labelLane(f *Fixture) measure.Lane {
	count := 0
	return measure.Lane{
		Name:   f.Engine.Name,
		Before: func() error { return f.Open(engine.Full) },
		Turn: func(t *measure.Turn) error {
			return t.Repeat(e.ops(100), func() error {
				count++
				return f.c.(engine.Changer).Label(fmt.Sprintf("user-%d", count))
			})
		},
		After: f.Settle,
	}
}

// changeSize is how many bytes the floor writes for a change.
const changeSize = 512

func (e *Env) bareChangeLane() (measure.Lane, error) {
	dir, err := e.folder("floor")
	if err != nil {
		return measure.Lane{}, err
	}
	a, err := floor.NewAppender(filepath.Join(dir, "context"), false)
	if err != nil {
		return measure.Lane{}, err
	}
	record, ops := make([]byte, changeSize), e.ops(100)
	return measure.Lane{
		Name:   floorSync,
		Before: func() error { return a.Lay(int64(ops) * changeSize) },
		Turn: func(t *measure.Turn) error {
			return t.Repeat(ops, func() error { return a.Append("", record) })
		},
	}, nil
}
