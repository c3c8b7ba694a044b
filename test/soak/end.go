package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// agree syncs a store and its copy once more, and tells where they differ then. Nobody is at work any more.
func agree(ctx context.Context, store string) (differ []string, err error) {
	here, there, err := openBoth(store)
	if err != nil {
		return nil, err
	}
	defer here.Close()
	defer there.Close()
	if _, err := bring(ctx, here, there, true); err != nil {
		return []string{err.Error()}, nil
	}
	switch total, err := bring(ctx, here, there, true); {
	case err != nil:
		return []string{err.Error()}, nil
	case total != replica.Total{}:
		differ = append(differ, fmt.Sprintf("another sync found something to do: %+v", total))
	}
	ids, err := listed(ctx, here)
	if err != nil {
		return nil, err
	}
	others, err := listed(ctx, there)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(ids, others) {
		return append(differ, fmt.Sprintf("the store has the contexts %v, and its copy %v", ids, others)), nil
	}
	a, err := replica.NewFolder(here).Digests(ctx, ids)
	if err != nil {
		return nil, err
	}
	b, err := replica.NewFolder(there).Digests(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if err := errors.Join(a[i].Err, b[i].Err); err != nil {
			differ = append(differ, fmt.Sprintf("context %s: %v", id, err))
		} else if a[i].Sum != b[i].Sum {
			differ = append(differ, fmt.Sprintf("context %s is another one in the copy", id))
		}
	}
	return differ, nil
}

func listed(ctx context.Context, s *ctxdir.Store) (ids []uuid.UUID, err error) {
	for sum, err := range s.List(ctx, ctxdir.ListOptions{Kind: "*"}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, sum.ID)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return ids, nil
}

// indexed tells where the index that was brought up to date again and again differs from a new one.
func indexed(ctx context.Context, store string) (differ []string, err error) {
	s, err := ctxdir.Open(store)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	x, err := search.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer x.Close() //nolint:errcheck // it is a cache
	old, err := found(ctx, x)
	if err != nil {
		return nil, err
	}
	if err := x.Rebuild(ctx); err != nil {
		return nil, err
	}
	fresh, err := found(ctx, x)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(old, fresh) {
		differ = append(differ, fmt.Sprintf("the search index finds %d messages, and %d when it is new", len(old), len(fresh)))
	}
	return differ, nil
}

// found are all messages with a word, and the branches that show them.
func found(ctx context.Context, x *search.Index) (map[string]string, error) {
	if err := update(ctx, x); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for hit, err := range x.Search(ctx, search.Query{Text: `"river"`, Bookkeeping: true}) {
		if err != nil {
			return nil, err
		}
		slices.Sort(hit.Branches)
		all[fmt.Sprint(hit.Context, hit.Line, hit.Position, hit.ID)] = fmt.Sprint(hit.Branches)
	}
	return all, nil
}
