package main

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	tokens "github.com/ctxdir/ctxdir/usage"
)

// countTokens calls f with a counter that reads the search index, which is brought up to date before. Where the index
// cannot be used, because the store cannot be changed or the index fails, the counter reads the messages: f counts the
// same.
func (a *app) countTokens(ctx context.Context, s *ctxdir.Store, f func(counter *tokens.Counter) error) error {
	counter := tokens.NewCounter(s)
	x, done, err := a.tokenIndex(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		a.note("reading all messages, since the search index cannot be used: %v", err)
	}
	if x == nil {
		return f(counter)
	}
	counter.UseIndex(x)
	return closeAfter(done, f(counter))
}

// tokenIndex opens the search index, and brings it up to date. It returns nil for a store that cannot be changed.
func (a *app) tokenIndex(ctx context.Context) (x *search.Index, done func() error, err error) {
	path, err := a.storePath()
	if err != nil {
		return nil, nil, err
	}
	// A verb that only reads has the store open for reading, and then the index would be in memory.
	s, err := ctxdir.Open(path, a.options()...)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // it is open for reading: it can be read, but not changed
	}
	if x, err = search.Open(ctx, s); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	done = func() error { return errors.Join(x.Close(), s.Close()) }
	is, err := x.Stats(ctx)
	if err == nil && is.Memory {
		return nil, nil, done()
	}
	if err == nil {
		// The count reads the contexts that the update could not, and says why it cannot, either.
		_, err = a.updateIndex(ctx, x, search.UpdateOptions{})
	}
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return x, done, nil
}
