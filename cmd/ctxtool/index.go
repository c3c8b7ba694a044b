package main

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/search"
	"github.com/spf13/cobra"
)

type indexRecord struct {
	Record   string `json:"record"`
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"`
	Behind   int64  `json:"behind"`
}

type indexFlags struct{ rebuild, check, drop bool }

func (a *app) indexCmd() *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Bring the search index up to date",
		Long: `Bring the search index, derived/search.db in the store, up to date, and print its size. "ctxtool
search" does so automatically. The index is a cache: it can be removed at any time.`,
		Example:     "  ctxtool index\n  ctxtool index --check",
		Annotations: exits("the index was damaged, or a context cannot be read", ofStores...),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.rebuild && f.check || f.rebuild && f.drop || f.check && f.drop {
				return usage(cmd, "--rebuild, --check and --drop cannot be used together")
			}
			return a.onStore(func(ctx context.Context, s *ctxdir.Store, _ []string) error { return a.index(ctx, s, &f) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.rebuild, "rebuild", false, "rebuild the index from scratch")
	flags.BoolVar(&f.check, "check", false, "compare the whole index with the store, and repair it")
	flags.BoolVar(&f.drop, "drop", false, "remove the index")
	return cmd
}

func (a *app) index(ctx context.Context, s *ctxdir.Store, f *indexFlags) error {
	if f.drop {
		return search.Drop(s)
	}
	x, err := search.Open(ctx, s)
	if err != nil {
		return err
	}
	return closeAfter(x.Close, a.indexIn(ctx, x, f))
}

func (a *app) indexIn(ctx context.Context, x *search.Index, f *indexFlags) error {
	var damage error
	if f.check {
		if damage = x.Check(ctx); damage != nil && !errors.Is(damage, ctxdir.ErrDamaged) {
			return damage
		}
	}
	if f.rebuild || damage != nil {
		if err := x.Rebuild(ctx); err != nil {
			return err
		}
	}
	updated, err := a.updateIndex(ctx, x, search.UpdateOptions{})
	if err != nil {
		return err
	}
	if f.check && damage == nil {
		mended, err := a.updateIndex(ctx, x, search.UpdateOptions{Whole: true})
		if err != nil {
			return err
		}
		if mended.Messages > 0 {
			a.note("repaired the rows of %s", plain.Count(int(mended.Messages), "message"))
		}
	}
	is, err := x.Stats(ctx)
	if err != nil {
		return err
	}
	r := indexRecord{"index", is.Messages, is.Bytes, updated.Behind}
	if err := a.result(r, "%s  %s", plain.Count(int(is.Messages), "message"), plain.Size(is.Bytes)); err != nil {
		return err
	}
	switch {
	case damage != nil:
		return problems("", "%v; it was rebuilt", damage)
	case updated.Problem != nil:
		return problems(hint(updated.Problem), "not indexed: %v", updated.Problem)
	}
	return nil
}
