package writer

import (
	"encoding/json"
	"fmt"

	"github.com/ctxdir/ctxdir"
)

// mainBranch is the branch of a new context.
const mainBranch = "main"

// mostBranches bounds the branches that a writer has in a context.
const mostBranches = 12

// crowded removes one of the writer's branches from a context that has enough of them.
func (w *worker) crowded(c *ctxdir.Context) (removed bool, err error) {
	names := w.branches(c)
	if len(names) < mostBranches {
		return false, nil
	}
	name := names[w.random.IntN(len(names))]
	return true, w.step(Step{Op: Remove, Context: c.ID(), Branch: name}, func(*Step) error {
		b, err := c.Branch(name)
		if err != nil {
			return err
		}
		return b.Remove(w.ctx)
	})
}

func (w *worker) newBranch() error {
	c, name := w.anyContext(), w.name()
	if removed, err := w.crowded(c); removed {
		return err
	}
	return w.step(Step{Op: New, Context: c.ID(), Branch: name}, func(*Step) error {
		_, err := c.Active().Fork(w.ctx, name, 0)
		return err
	})
}

func (w *worker) fork() error {
	c, b, err := w.branch()
	if b == nil {
		return err
	}
	n, err := b.Len(w.ctx)
	if err != nil {
		return err
	}
	return w.forkAt(c, b, w.random.Int64N(n+1))
}

// forkShared forks near the end of what all append to: at messages of others, which may not be durable yet.
func (w *worker) forkShared() error {
	c := w.sharedContext()
	if err := c.Refresh(w.ctx); err != nil {
		return err
	}
	b, err := c.Branch(mainBranch)
	if err != nil {
		return err
	}
	n, err := b.Len(w.ctx)
	if err != nil {
		return err
	}
	return w.forkAt(c, b, max(0, n-w.random.Int64N(4)))
}

func (w *worker) forkAt(c *ctxdir.Context, b *ctxdir.Branch, at int64) error {
	if removed, err := w.crowded(c); removed {
		return err
	}
	name := w.name()
	return w.step(Step{Op: Fork, Context: c.ID(), Branch: b.Name(), To: name, At: at}, func(*Step) error {
		_, err := b.Fork(w.ctx, name, at)
		return err
	})
}

// named is a branch that can be renamed and removed.
func (w *worker) named() (*ctxdir.Context, *ctxdir.Branch, error) {
	c, b, err := w.branch()
	if b != nil && b.Name() == mainBranch {
		return nil, nil, nil
	}
	return c, b, err
}

func (w *worker) rename() error {
	c, b, err := w.named()
	if b == nil {
		return err
	}
	name := w.name()
	return w.step(Step{Op: Rename, Context: c.ID(), Branch: b.Name(), To: name}, func(*Step) error {
		_, err := b.Rename(w.ctx, name)
		return err
	})
}

func (w *worker) remove() error {
	c, b, err := w.named()
	if b == nil {
		return err
	}
	return w.step(Step{Op: Remove, Context: c.ID(), Branch: b.Name()}, func(*Step) error { return b.Remove(w.ctx) })
}

func (w *worker) rewind() error {
	c, b, err := w.branch()
	if b == nil {
		return err
	}
	n, err := b.Len(w.ctx)
	if err != nil {
		return err
	}
	at := w.random.Int64N(n + 1)
	return w.step(Step{Op: Rewind, Context: c.ID(), Branch: b.Name(), At: at}, func(*Step) error { return b.Rewind(w.ctx, at) })
}

// configure changes the metadata of a context that all write to, each another member.
func (w *worker) configure() error {
	c, value := w.sharedContext(), fmt.Sprint(w.random.Uint32())
	return w.step(Step{Op: Configure, Context: c.ID(), Branch: w.Name, Value: value}, func(*Step) error {
		return c.Update(w.ctx, func(m *ctxdir.Metadata) error {
			config := map[string]string{}
			if m.Config != nil {
				if err := json.Unmarshal(m.Config, &config); err != nil {
					return err
				}
			}
			config[w.Name] = value
			var err error
			m.Config, err = json.Marshal(config)
			return err
		})
	})
}
