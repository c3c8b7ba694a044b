package rows

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/measure"
	"github.com/ctxdir/ctxdir/internal/knobs"
)

// sealRow measures a seal. It runs in the background, so there is no goal.
func sealRow(ctx context.Context, e *Env) ([]*Result, error) {
	size := 1_000
	if e.Quick {
		size = 50
	}
	r := &Result{
		Row:  fmt.Sprintf("seal of %s messages", Count(int64(size))),
		At:   Count(e.size(10_000)),
		Unit: Nanoseconds,
		Notes: []string{
			"The benchmark appends durably, one message at a time, without a seal. Then \"Admin.Seal\" makes a segment of the " +
				"messages, durably, and removes the log. \"Close\" does so too, as it does from 64 KiB on. " +
				"Both also make the message files that do not exist yet. The floor is a pwrite of all messages and an fdatasync.",
		},
	}
	f, err := e.Fresh(e.Engines[0], e.size(10_000))
	if err != nil {
		return nil, err
	}
	byCall, err := openAlone(ctx, f.Dir, knobs.SealBytes(-1))
	if err != nil {
		return nil, err
	}
	defer byCall.close()
	var closing *opened
	appendAll := func(c *ctxdir.Context) error {
		for range size {
			m := f.Message(f.N)
			f.N++
			if _, err := c.Active().Append(ctx, ctxdir.Draft{ID: m.ID, Role: m.Role, Type: m.Type, Body: m.Body}); err != nil {
				return err
			}
		}
		return nil
	}
	lanes := []measure.Lane{{
		Name: "ctxdir: Admin.Seal",
		Turn: func(t *measure.Turn) error {
			if err := appendAll(byCall.c); err != nil {
				return err
			}
			return t.Time(func() error { return byCall.c.Admin().Seal(ctx) })
		},
	}, {
		Name:   "ctxdir: Close",
		Before: func() (err error) { closing, err = openAlone(ctx, f.Dir, knobs.SealBytes(8<<20)); return err },
		Turn: func(t *measure.Turn) error {
			if err := appendAll(closing.c); err != nil {
				return err
			}
			return t.Time(closing.c.Close)
		},
		After: func() error { return closing.s.Close() },
	}}
	lane, err := e.floorSealLane(f, size)
	if err != nil {
		return nil, err
	}
	lanes = append(lanes, lane)
	p := e.plan()
	p.Rounds *= 2 // a turn is one seal
	samples, err := measure.Run(ctx, p, lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	return []*Result{r}, nil
}

// floorSealLane writes as many messages to preallocated space at once.
func (e *Env) floorSealLane(f *Fixture, size int) (measure.Lane, error) {
	dir, err := e.folder("floor")
	if err != nil {
		return measure.Lane{}, err
	}
	a, err := floor.NewAppender(filepath.Join(dir, "context"), false)
	if err != nil {
		return measure.Lane{}, err
	}
	next := int64(0)
	return measure.Lane{
		Name:   floorSync,
		Before: func() error { return a.Lay(space(f.Stream, next, size)) },
		Turn: func(t *measure.Turn) error {
			records := make([][]byte, size)
			for i := range records {
				_, records[i] = floorRecord(f.Stream, next)
				next++
			}
			return t.Time(func() error { return a.Batch(nil, records, 0) })
		},
	}, nil
}
