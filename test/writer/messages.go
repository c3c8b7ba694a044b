package writer

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// drafts makes n messages of the role of s.
func (w *worker) drafts(n int, s said) ([]ctxdir.Draft, []Message) {
	drafts, messages := make([]ctxdir.Draft, n), make([]Message, n)
	for i := range drafts {
		drafts[i] = ctxdir.Draft{ID: w.uuid(), Body: body(w.random, s)}
		messages[i] = Message{ID: drafts[i].ID, Sum: SumOf(drafts[i].Body)}
	}
	return drafts, messages
}

// some is how many: one as a rule.
func (w *worker) some() int { return max(1, w.random.IntN(12)-6) }

func (w *worker) appendShared() error {
	c := w.sharedContext()
	b, err := c.Branch(mainBranch)
	if err != nil {
		return err
	}
	return w.append(c, b, false)
}

func (w *worker) appendOwn() error {
	c, b, err := w.branch()
	if b == nil {
		return err
	}
	return w.append(c, b, true)
}

func (w *worker) append(c *ctxdir.Context, b *ctxdir.Branch, alone bool) error {
	drafts, messages := w.drafts(w.some(), said{Role: "user", By: w.Name, Alone: alone})
	return w.step(Step{Op: Append, Context: c.ID(), Branch: b.Name(), Messages: messages}, func(s *Step) error {
		if len(drafts) == 1 {
			at, err := b.Append(w.ctx, drafts[0])
			s.Messages[0].Position = at.Position
			return err
		}
		results, err := b.AppendBatch(w.ctx, drafts)
		for i, r := range results {
			s.Messages[i].Position = r.Position
			if err == nil {
				err = r.Err
			}
		}
		return err
	})
}

// burst appends by several goroutines at once, which share syncs.
func (w *worker) burst() error {
	c := w.sharedContext()
	b, err := c.Branch(mainBranch)
	if err != nil {
		return err
	}
	drafts, messages := w.drafts(2+w.random.IntN(6), said{Role: "user", By: w.Name})
	s := Step{Op: Burst, Context: c.ID(), Branch: b.Name(), Messages: messages}
	return w.step(s, func(*Step) error {
		var group sync.WaitGroup
		errs := make([]error, len(drafts))
		for i, d := range drafts {
			group.Go(func() {
				placed := s
				placed.State = Placed
				at, err := b.Append(w.ctx, d)
				if err == nil {
					placed.Messages = []Message{{d.ID, messages[i].Sum, at.Position}}
					err = w.account.write(placed)
				}
				errs[i] = err
			})
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// replace gives one of the writer's own messages another body.
func (w *worker) replace() error {
	c, b, m, err := w.message()
	if m == nil {
		return err
	}
	next := body(w.random, said{Role: "assistant", By: w.Name, Alone: true})
	s := Step{Op: Replace, Context: c.ID(), Branch: b.Name(), Messages: []Message{{m.ID, SumOf(next), m.Position}}}
	return w.step(s, func(*Step) error {
		return b.Replace(w.ctx, m.ID, ctxdir.Draft{Body: next}, ctxdir.WriteOptions{Shared: true})
	})
}

// erase erases one of the writer's own messages.
func (w *worker) erase() error {
	c, b, m, err := w.message()
	if m == nil {
		return err
	}
	s := Step{Op: Erase, Context: c.ID(), Branch: b.Name(), Messages: []Message{{ID: m.ID, Position: m.Position}}}
	return w.step(s, func(*Step) error {
		_, err := w.store.Erase(w.ctx, c.ID(), []uuid.UUID{m.ID}, ctxdir.EraseOptions{Shared: true})
		if err == nil {
			err = c.Refresh(w.ctx) // else it would still show the message
		}
		return err
	})
}

// message is one that only this writer changes. nil: there is none.
func (w *worker) message() (*ctxdir.Context, *ctxdir.Branch, *ctxdir.Message, error) {
	c, b, err := w.branch()
	if b == nil {
		return nil, nil, nil, err
	}
	n, err := b.Len(w.ctx)
	if err != nil || n == 0 {
		return nil, nil, nil, err
	}
	at := w.random.Int64N(n)
	found, err := b.Range(w.ctx, at, at+1)
	if err != nil {
		return nil, nil, nil, err
	}
	m := found[0]
	if errors.Is(m.Unavailable, ctxdir.ErrErased) {
		return nil, nil, nil, nil
	}
	if m.Unavailable != nil {
		return nil, nil, nil, m.Unavailable
	}
	var whose struct {
		By    string `json:"by"`
		Alone bool   `json:"alone"`
	}
	if err := json.Unmarshal(m.Stored, &whose); err != nil || whose.By != w.Name || !whose.Alone {
		return nil, nil, nil, err // of the branch that it was forked from
	}
	return c, b, m, nil
}
