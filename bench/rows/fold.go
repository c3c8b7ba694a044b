package rows

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/bench/floor"
	"github.com/ctxdir/ctxdir/bench/machine"
	"github.com/ctxdir/ctxdir/bench/measure"
)

// foldRow says how long a fold takes. It goes on in the background; there is no goal but that it is told.
func foldRow(ctx context.Context, e *Env) ([]*Result, error) {
	size := 1_000
	if e.Quick {
		size = 50
	}
	r := &Result{
		Row:  fmt.Sprintf("fold of %s messages", Count(int64(size))),
		At:   Count(e.size(10_000)),
		Unit: Nanoseconds,
		Notes: []string{
			"The benchmark appends durably, one message at a time, with background folds turned off. " +
				"\"Close\" then folds the journal into rows and index.json, as the engine does in the background when a journal " +
				"reaches its size. \"Context.Fold\" also makes the message files durable, as every eighth background fold does. " +
				"It includes a syncfs, which also writes back the data of other programs on the same file system. " +
				"\"syncfs alone\" is the time of a syncfs after the same number of plain files was created.",
		},
	}
	f, err := e.Fresh(e.Engines[0], e.size(10_000))
	if err != nil {
		return nil, err
	}
	dir, err := e.folder("floor")
	if err != nil {
		return nil, err
	}
	s, err := ctxdir.Open(f.Dir, ctxdir.WithFoldBytes(-1))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var c *ctxdir.Context
	for id, err := range s.IDs() {
		if err != nil {
			return nil, err
		}
		if c, err = s.Context(ctx, id); err != nil {
			return nil, err
		}
		defer c.Close()
	}
	closing, err := ctxdir.Open(f.Dir, ctxdir.WithFoldBytes(8<<20)) // nothing is folded before Close
	if err != nil {
		return nil, err
	}
	defer closing.Close()
	lanes := []measure.Lane{{
		Name: "ctxdir: Context.Fold",
		Turn: func(t *measure.Turn) error {
			for range size {
				m := f.Message(f.N)
				f.N++
				if _, err := c.Active().Append(ctx, ctxdir.Draft{ID: m.ID, Role: m.Role, Type: m.Type, Body: m.Body}); err != nil {
					return err
				}
			}
			return t.Time(func() error { return c.Fold(ctx) })
		},
	}, {
		Name: "ctxdir: Close",
		Turn: func(t *measure.Turn) error {
			c, err := closing.Context(ctx, c.ID())
			if err != nil {
				return err
			}
			for range size {
				m := f.Message(f.N)
				f.N++
				if _, err := c.Active().Append(ctx, ctxdir.Draft{ID: m.ID, Role: m.Role, Type: m.Type, Body: m.Body}); err != nil {
					return err
				}
			}
			return t.Time(c.Close)
		},
	}}
	a, err := floor.NewAppender(filepath.Join(dir, "context"), true)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	next := int64(0)
	lanes = append(lanes, measure.Lane{
		Name:   "syncfs alone",
		Before: func() error { return a.Lay(space(f.Stream, next, size)) },
		Turn: func(t *measure.Turn) error {
			names, records := make([]string, size), make([][]byte, size)
			for i := range names {
				names[i], records[i] = floorRecord(f.Stream, next)
				next++
			}
			if err := a.Batch(names, records, 1); err != nil {
				return err
			}
			return t.Time(func() error { return machine.SyncAll(dir) })
		},
	})
	p := e.plan()
	p.Rounds *= 2 // a turn is one fold
	samples, err := measure.Run(ctx, p, lanes)
	if err != nil {
		return nil, err
	}
	for k, s := range samples {
		r.Cells = append(r.Cells, cellOf(lanes[k].Name, s))
	}
	return []*Result{r}, nil
}

// diskRow says what each engine takes on disk.
func diskRow(_ context.Context, e *Env) ([]*Result, error) {
	n := e.size(10_000)
	r := &Result{Row: "disk used", At: Count(n), Unit: Bytes,
		Notes: []string{"The figure counts the blocks of all files and folders after the store is closed."}}
	for _, eng := range e.able(n) {
		f, err := e.Fresh(eng, n)
		if err != nil {
			return nil, err
		}
		if len(r.Cells) == 0 {
			var payload int64
			for i := range f.N {
				payload += int64(len(f.Stream.Body(i)))
			}
			r.Cells = append(r.Cells, &Cell{Name: "bodies alone", Value: float64(payload), N: 1})
		}
		if err := machine.SyncAll(f.Dir); err != nil {
			return nil, err
		}
		var sum int64
		files := 0
		err = filepath.WalkDir(f.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			b, err := machine.Blocks(path)
			sum += b
			if !d.IsDir() {
				files++
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		r.Cells = append(r.Cells, &Cell{Name: eng.Name, Value: float64(sum), N: 1, Note: Count(int64(files)) + " files"})
	}
	return []*Result{r}, nil
}
