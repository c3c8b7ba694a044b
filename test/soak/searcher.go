package soak

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/test/writer"
)

// queries are of words that writers use: plain language, a phrase, without a word, and the beginning of one.
var queries = []string{"river stone", `"old letter"`, "evening -window", "remem*"}

// searcher brings the index of a store up to date and searches it again and again.
func searcher(ctx context.Context, dir string) error {
	s, err := ctxdir.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	defer x.Close() //nolint:errcheck // it is a cache
	round := 0
	return again(ctx, func() error {
		if err := update(ctx, x); err != nil {
			return err
		}
		round++
		q := search.Query{Text: queries[round%len(queries)], Limit: 50}
		for hit, err := range x.Search(ctx, q) {
			if err != nil {
				return fmt.Errorf("searching for %s: %w", q.Text, err)
			}
			if err := open(ctx, s, &hit); err != nil && !passing(err) {
				return fmt.Errorf("opening what %s found: %w", q.Text, err)
			}
		}
		return nil
	})
}

// update brings an index up to date. Contexts may be removed meanwhile.
func update(ctx context.Context, x *search.Index) error {
	done, err := x.Update(ctx, search.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("updating the index: %w", err)
	}
	for _, err := range writer.Parts(done.Problem) {
		if !passing(err) {
			return fmt.Errorf("updating the index: %w", err)
		}
	}
	return nil
}

// open reads the message that was found. It, its branch or its context may be gone.
func open(ctx context.Context, s *ctxdir.Store, hit *search.Hit) error {
	return s.Use(ctx, hit.Context, func(c *ctxdir.Context) error {
		b, err := c.Branch(hit.Branches[0])
		if err != nil {
			return err
		}
		m, err := b.Message(ctx, hit.ID)
		if err != nil {
			return err
		}
		_, err = m.Body(ctx)
		did.Add(1)
		return err
	})
}
