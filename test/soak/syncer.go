package soak

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/search"
)

// copyOf is the other store. A writer works there too, so that both have something that the other one lacks.
func copyOf(store string) string { return filepath.Join(filepath.Dir(store), "copy") }

// syncer brings a store and its copy together again and again. A round that has begun is completed: what both sides
// agreed on is written in the end, and a branch that is removed before that would come back.
func syncer(ctx context.Context, dir string) error {
	here, there, err := openBoth(dir)
	if err != nil {
		return err
	}
	defer here.Close()
	defer there.Close()
	whole := context.WithoutCancel(ctx)
	return again(ctx, func() error {
		total, err := bring(whole, here, there, false)
		did.Add(total.Messages)
		return err
	})
}

func openBoth(dir string) (here, there *ctxdir.Store, err error) {
	if here, err = ctxdir.Open(dir); err != nil {
		return nil, nil, err
	}
	if there, err = ctxdir.Open(copyOf(dir)); err != nil {
		return nil, nil, errors.Join(err, here.Close())
	}
	search.Attach(here) // it has an index
	return here, there, nil
}

// bring brings two stores together. Unless nobody else is at work, contexts may be removed, or change too often. Nobody
// works on the same branch in both, so that they do not diverge.
func bring(ctx context.Context, here, there *ctxdir.Store, alone bool) (replica.Total, error) {
	var failed []error
	o := replica.Options{Host: "soak", Report: func(x replica.Synced) {
		if len(x.Diverged) > 0 {
			failed = append(failed, fmt.Errorf("context %s: both sides went on, says the sync: %q", x.ID, x.Diverged))
		}
		if x.Err != nil && (alone || !passing(x.Err) && !errors.Is(x.Err, ctxdir.ErrPosition) && !errors.Is(x.Err, ctxdir.ErrLocked)) {
			failed = append(failed, fmt.Errorf("syncing context %s: %w", x.ID, x.Err))
		}
	}}
	total, err := replica.Sync(ctx, replica.NewFolder(here), replica.NewFolder(there), o)
	if err != nil {
		failed = append(failed, fmt.Errorf("syncing: %w", err))
	}
	return total, errors.Join(failed...)
}
