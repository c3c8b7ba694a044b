package engine

import (
	"cmp"
	"context"

	"github.com/google/uuid"
)

// MaxHandles bounds the contexts that a store keeps open for [Store.Use], beside those in use.
const MaxHandles = 64

// Use calls f with an open context, at its newest commit. The store keeps the context open for later calls, and calls
// at the same time share it. f must not close it. [Store.Close] waits for f. Use fails with [ErrNotExist], and returns
// the error of f.
func (s *Store) Use(ctx context.Context, id uuid.UUID, f func(c *Context) error) error {
	fail := func(err error) error { return Wrap(Error{Op: "open", Context: id}, err) }
	if !s.handles.enter() {
		return fail(ErrClosed)
	}
	defer s.handles.group.Done()
	h, err := s.currentHandle(ctx, id)
	if err != nil {
		return fail(err)
	}
	defer func() { s.handles.release(id, h, h.c.Legacy() != "") }() // a view is made anew for each use
	return f(h.c)
}

// currentHandle returns an open handle that shows the newest commit. The caller releases it.
func (s *Store) currentHandle(ctx context.Context, id uuid.UUID) (*handle, error) {
	for {
		h := s.handles.acquire(id)
		opened, err := s.openHandle(ctx, h, id)
		if err == nil && (opened || h.c.refresh(ctx) == nil) {
			return h, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		s.handles.release(id, h, err == nil)
		if err != nil {
			return nil, err
		}
		// Others removed or replaced the context, or it is damaged: opening it says so.
	}
}

// openHandle opens the context of a handle, unless another caller did. It reports whether it opened it.
func (s *Store) openHandle(ctx context.Context, h *handle, id uuid.UUID) (opened bool, err error) {
	select {
	case <-h.opening:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { h.opening <- struct{}{} }()
	if h.c != nil {
		return false, nil
	}
	c, err := s.openAny(ctx, id)
	if err == nil {
		h.c = c
	}
	return err == nil, err
}

// Forget closes the context that [Store.Use] keeps open. If it is in use, its last user closes it.
func (s *Store) Forget(id uuid.UUID) {
	t := s.handles
	t.mu.Lock()
	h := t.all[id]
	var c *Context
	if h != nil {
		c = t.drop(id, h)
	}
	t.mu.Unlock()
	t.shut(c)
}

// enter counts a call of Use. It reports false after close.
func (t *handles) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.group.Add(1)
	}
	return !t.closed
}

// acquire returns the handle of a context for one use. The caller releases it.
func (t *handles) acquire(id uuid.UUID) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.all[id]
	if h == nil {
		h = &handle{opening: make(chan struct{}, 1)}
		h.opening <- struct{}{}
		if t.all == nil {
			t.all = map[uuid.UUID]*handle{}
		}
		t.all[id] = h
	}
	h.users++
	t.uses++
	h.last = t.uses
	return h
}

// release ends a use. A stale handle goes; so does the one that was not used for longest when there are too many.
func (t *handles) release(id uuid.UUID, h *handle, stale bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.users--
	if stale || h.dropped || h.users == 0 && h.c == nil {
		t.shutLater(t.drop(id, h))
	}
	for len(t.all) > MaxHandles {
		var oldest uuid.UUID
		var least *handle
		for id, h := range t.all {
			if h.users == 0 && (least == nil || h.last < least.last) {
				oldest, least = id, h
			}
		}
		if least == nil {
			return // all are in use
		}
		t.shutLater(t.drop(oldest, least))
	}
}

// drop removes a handle, and returns its context for closing unless it is in use. The caller holds mu.
func (t *handles) drop(id uuid.UUID, h *handle) (c *Context) {
	h.dropped = true
	if t.all[id] == h {
		delete(t.all, id)
	}
	if h.users == 0 {
		c, h.c = h.c, nil
	}
	return c
}

// shutLater closes a context that drop returned, since a seal takes its time.
func (t *handles) shutLater(c *Context) {
	if c != nil {
		t.group.Go(func() { t.shut(c) })
	}
}

func (t *handles) shut(c *Context) {
	if c == nil {
		return
	}
	err := c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = cmp.Or(t.err, err)
}

// close closes all handles, once nothing uses them.
func (t *handles) close() error {
	t.mu.Lock()
	t.closed = true
	for id, h := range t.all {
		t.shutLater(t.drop(id, h))
	}
	t.mu.Unlock()
	t.group.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.err
	t.err = nil
	return err
}
