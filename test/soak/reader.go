package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// pool is what the reader keeps of messages, in bytes: little, so that it is full soon.
const pool = 4 << 20

// reader looks at everything in a store again and again. The contexts that are there in the beginning stay open.
func reader(ctx context.Context, dir string) error {
	s, err := ctxdir.Open(dir, ctxdir.Options{CacheSize: pool})
	if err != nil {
		return err
	}
	defer s.Close()
	group, ctx := errgroup.WithContext(ctx)
	for id, err := range s.IDs() {
		if err != nil {
			return err
		}
		group.Go(func() error {
			if err := stay(ctx, s, id); err != nil && !passing(err) {
				return fmt.Errorf("staying: %w", err)
			}
			return nil
		})
	}
	group.Go(func() error {
		return again(ctx, func() error { return lookAt(ctx, s) })
	})
	return group.Wait()
}

// passing reports whether an error is about what others remove or erase meanwhile.
func passing(err error) bool {
	return errors.Is(err, ctxdir.ErrNotExist) || errors.Is(err, ctxdir.ErrErased)
}

// lookAt reads a whole store. Contexts, branches and messages may go meanwhile.
func lookAt(ctx context.Context, s *ctxdir.Store) error {
	for sum, err := range s.List(ctx, ctxdir.ListOptions{}) {
		if err != nil {
			return err
		}
		if sum.Problem != nil {
			if passing(sum.Problem) {
				continue
			}
			return fmt.Errorf("listing: %w", sum.Problem)
		}
		if err := readContext(ctx, s, sum); err != nil && !passing(err) {
			return fmt.Errorf("reading: %w", err)
		}
	}
	for f, err := range s.Check(ctx, ctxdir.CheckOptions{All: true}) {
		if err != nil && !passing(err) {
			return err
		}
		if err == nil && f.Severity == "error" {
			return fmt.Errorf("check: %s of context %s: %s", f.Kind, f.Context, f.Detail)
		}
	}
	return nil
}

// stay keeps a context open and reads the ends of its branches again and again. What is unavailable twice in a row was
// not removed meanwhile.
func stay(ctx context.Context, s *ctxdir.Store, id uuid.UUID) error {
	c, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	var missed map[uuid.UUID]bool
	return again(ctx, func() error {
		if err := c.Refresh(ctx); err != nil {
			return err
		}
		missing := map[uuid.UUID]bool{}
		for _, info := range c.Metadata().Branches {
			b, err := c.Branch(info.Name)
			if err != nil {
				return err
			}
			last, err := b.Last(ctx, 20)
			if err != nil && !passing(err) {
				return err
			}
			for _, m := range last {
				if did.Add(1); m.Unavailable == nil || errors.Is(m.Unavailable, ctxdir.ErrErased) {
					continue
				}
				if missed[m.ID] {
					return fmt.Errorf("branch %q of context %s, message %s at %d: %w", info.Name, id, m.ID, m.Position, m.Unavailable)
				}
				missing[m.ID] = true
			}
		}
		missed = missing
		return nil
	})
}

func readContext(ctx context.Context, s *ctxdir.Store, sum ctxdir.Summary) error {
	c, err := s.Open(ctx, sum.ID)
	if err != nil {
		return err
	}
	defer c.Close()
	last, err := c.Active().Last(ctx, 50)
	if err != nil {
		return err
	}
	did.Add(int64(len(last)))
	last = slices.DeleteFunc(last, func(m *ctxdir.Message) bool { return errors.Is(m.Unavailable, ctxdir.ErrErased) })
	_, err = ctxdir.ResolveAll(ctx, last)
	return err
}
