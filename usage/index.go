package usage

import (
	"context"
	"errors"
	"iter"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Index has the digests of messages, so that a [Counter] does not read them again. [Digestion] makes the data. The
// search index of package search is one.
type Index interface {
	// UpdateContext brings the digests of a context up to date.
	UpdateContext(ctx context.Context, id uuid.UUID) error
	// Digests yields the digests of the available messages that a line of a context has at the positions from and later,
	// in order, with those that it inherits. It yields nothing for a line that it does not know.
	Digests(ctx context.Context, id, line uuid.UUID, from int64) iter.Seq2[Digest, error]
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
