package main

import (
	"context"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/search"
)

// notSearched reports what the index does not have.
func (a *app) notSearched(updated search.UpdateResult) error {
	if updated.Behind > 0 && !a.json {
		a.note("not searched yet: %s", plain.Count(int(updated.Behind), "commit"))
	}
	if updated.Problem != nil {
		return problems(hint(updated.Problem), "not searched: %v", updated.Problem)
	}
	return nil
}

// updateIndex brings the index up to date, behind a progress bar.
func (a *app) updateIndex(ctx context.Context, x *search.Index, o search.UpdateOptions) (search.UpdateResult, error) {
	bar := a.newProgress("indexing")
	o.Progress = func(done, all int) { bar.Items("contexts", done, all) }
	updated, err := x.Update(ctx, o)
	bar.Clear()
	return updated, err
}
