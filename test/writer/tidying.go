package writer

import (
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// tidy is a step that changes nothing a reader can see.
func (w *worker) tidy(what string, c *ctxdir.Context, do func() error) error {
	s := Step{Op: Tidy, Value: what}
	if c != nil {
		s.Context = c.ID()
	}
	return w.step(s, func(*Step) error { return do() })
}

func (w *worker) seal() error {
	c := w.anyContext()
	return w.tidy("seal", c, func() error { return c.Admin().Seal(w.ctx) })
}

func (w *worker) archive() error {
	c := w.anyContext()
	o := ctxdir.ArchiveOptions{Contexts: []uuid.UUID{c.ID()}}
	if w.random.IntN(2) == 0 {
		o.Branch = mainBranch
	}
	return w.tidy("archive", c, func() error {
		_, err := w.store.Archive(w.ctx, o)
		return err
	})
}

func (w *worker) unarchive() error {
	c := w.anyContext()
	return w.tidy("unarchive", c, func() error {
		_, err := c.Admin().Unarchive(w.ctx, nil)
		return err
	})
}

func (w *worker) externalise() error {
	c, threshold := w.anyContext(), int64(1<<10)<<w.random.IntN(6)
	return w.tidy("externalise", c, func() error {
		_, err := c.Admin().Externalise(w.ctx, threshold, false)
		return err
	})
}

// collect collects, half of the times without a grace period: what was removed a moment ago goes for good.
func (w *worker) collect() error {
	o := ctxdir.CollectOptions{All: true}
	if w.random.IntN(2) == 0 {
		o.NoGrace = true
	}
	return w.tidy("collect", nil, func() error {
		_, err := w.store.Collect(w.ctx, o)
		for _, err := range Parts(err) {
			// Another writer may remove a context meanwhile.
			if !errors.Is(err, ctxdir.ErrNotExist) {
				return err
			}
		}
		return nil
	})
}

// reopen closes everything and opens it again.
func (w *worker) reopen() error {
	return w.tidy("reopen", nil, func() error {
		if err := w.close(); err != nil {
			return err
		}
		return w.open()
	})
}
