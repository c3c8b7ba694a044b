package usage

import (
	"context"
	"errors"
	"iter"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Steps yields the calls that a context records, each once, in the order of its branches. If it records no tokens, the
// steps are estimates from the texts: the input of a step is what came since the step before, and the output is the
// reply. A conversation that is sent again with each call counts once. Steps reads each message once or, for estimates,
// twice, but no payload of a kilobyte or more. It keeps the id of each prompt, and 16 bytes for each step.
func Steps(ctx context.Context, c *ctxdir.Context) iter.Seq2[Step, error] {
	return NewCounter(nil).Steps(ctx, c)
}

// Steps yields the calls of a context, as the function Steps does, without those that the counter has yielded before.
func (n *Counter) Steps(ctx context.Context, c *ctxdir.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if n.index != nil {
			s := n.newScan(ctx, c, yield)
			if s.count(s.indexed) == nil || s.stopped {
				return
			}
			// The calls that the index gave are the first ones of the scan, and count once.
		}
		s := n.newScan(ctx, c, yield)
		if err := s.count(s.scanned); err != nil && !s.stopped {
			yield(Step{Context: c.ID()}, err)
		}
	}
}

func (n *Counter) newScan(ctx context.Context, c *ctxdir.Context, yield func(Step, error) bool) *scan {
	return &scan{Counter: n, ctx: ctx, c: c, yield: yield, marks: map[string]*branchMarks{}, model: modelIn(c.Metadata())}
}

// UseIndex makes the counter count what an index has. It reads the messages of a context where the index fails. A message
// that was edited by hand counts as it is once the index has found the edit.
func (n *Counter) UseIndex(x Index) { n.index = x }

// indexed is the source that reads the digests in the index.
func (s *scan) indexed(_ bool, read func(*digested), end func()) error {
	if !s.current {
		// The branches were read before, so it knows their lines.
		if err := s.index.UpdateContext(s.ctx, s.c.ID()); err != nil {
			return err
		}
		s.current = true
	}
	return s.each(func(b *ctxdir.BranchInfo) error {
		for d, err := range s.index.Digests(s.ctx, s.c.ID(), b.Line, b.Shared) {
			if err != nil {
				return err
			}
			is, err := decodeDigest(d.Data)
			if err != nil {
				return err
			}
			if read(&digested{d.ID, d.Position, is}); s.stopped {
				return nil
			}
		}
		return nil
	}, end)
}

// PromptText returns the beginning of the prompt of a step: the first 120 bytes of its first text. It reads the
// message, and returns "" if there is none, or if it cannot be read any more.
func PromptText(ctx context.Context, c *ctxdir.Context, step *Step) (string, error) {
	if step.Prompt == uuid.Nil {
		return "", nil
	}
	b, err := c.Branch(step.Branch)
	if err != nil {
		return "", err
	}
	m, err := b.Message(ctx, step.Prompt)
	switch {
	case errors.Is(err, ctxdir.ErrNotExist):
		return "", nil
	case err != nil || m.Unavailable != nil:
		return "", err
	}
	return promptOf(m), nil
}
