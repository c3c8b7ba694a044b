package main

import (
	"context"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// onStore is the body of a verb that works on the store in use.
func (a *app) onStore(
	do func(ctx context.Context, s *ctxdir.Store, args []string) error, opts ...ctxdir.Options,
) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withStore(cmd.Context(), func(s *ctxdir.Store) error { return do(cmd.Context(), s, args) }, opts...)
	}
}

// onContext is the body of a verb that works on the context in its first argument.
func (a *app) onContext(
	do func(ctx context.Context, c *ctxdir.Context, args []string) error, opts ...ctxdir.Options,
) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error { return do(cmd.Context(), c, args[1:]) }, opts...)
	}
}

// eachContext runs an operation on each context behind a progress bar, and prints its results. The failure of one of
// several contexts does not stop the others. It returns the number of failures.
func eachContext[T any](
	ctx context.Context, a *app, label string, ids []uuid.UUID,
	do func(id uuid.UUID) (T, error), print func(id uuid.UUID, result T) error,
) (failed int, err error) {
	bar := a.newProgress(label)
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return failed, err
		}
		bar.Items("contexts", i, len(ids))
		result, err := do(id)
		bar.Clear()
		switch {
		case err == nil:
			if err := print(id, result); err != nil {
				return failed, err
			}
		case len(ids) == 1 || ctx.Err() != nil:
			return failed, err
		default:
			failed++
			a.warnOf(err)
		}
	}
	return failed, nil
}

// failures is the error of a verb that failed on some of several contexts.
func failures(verb string, failed, all int) error {
	if failed == 0 {
		return nil
	}
	return problems("", "failed to %s %d of %s", verb, failed, plain.Count(all, "context"))
}

// describe is the beginning of a context's id, and its title if it has one.
func describe(ctx context.Context, s *ctxdir.Store, id uuid.UUID) string {
	title := ""
	_ = withOpen(ctx, s, id, func(c *ctxdir.Context) error { // a damaged context has no title
		title = c.Summary().Title
		return nil
	})
	short := shortIDsIn(s).of(id)
	if title == "" {
		return short
	}
	return fmt.Sprintf("%s, %q,", short, plain.Shorten(plain.OneLine(title), 60))
}
