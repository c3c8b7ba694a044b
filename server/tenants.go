package server

import (
	"context"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// tenant is the open store of a user.
type tenant struct {
	user   uuid.UUID
	opened chan struct{} // closed once it is known whether the store opened
	store  Store
	err    error
	quota  quota
	uses   int         // requests
	since  time.Time   // nobody uses it
	timer  *time.Timer // until it goes

	options api.Options
	once    [2]sync.Once
	servers [2]*api.Server // one that only reads, and one that writes
}

// acquire returns the tenant of a user for one request. The caller releases it.
func (x *Server) acquire(ctx context.Context, user uuid.UUID) (*tenant, error) {
	for {
		t, isNew, err := x.tenant(ctx, user)
		if err != nil || isNew {
			return t, err
		}
		err = t.store.Look(ctx)
		if err == nil {
			return t, nil
		}
		gone := t.failed() != nil
		if gone {
			x.mu.Lock()
			x.forget(t) // it closes with its last request
			x.mu.Unlock()
		}
		x.release(t)
		if !gone {
			return nil, err
		}
	}
}

// tenant returns the tenant of a user, and whether it was opened for this request.
func (x *Server) tenant(ctx context.Context, user uuid.UUID) (t *tenant, isNew bool, err error) {
	x.mu.Lock()
	t = x.tenants[user]
	if t != nil {
		x.use(t)
		x.mu.Unlock()
		<-t.opened
		if t.err != nil {
			x.release(t)
		}
		return t, false, t.err
	}
	t = &tenant{user: user, opened: make(chan struct{}), uses: 1, options: x.o.API}
	t.options.Token, t.options.Full = x.token, t.full
	t.options.Exchange = x.exchange(t)
	x.tenants[user] = t
	most := x.o.MaxOpen
	x.mu.Unlock()
	x.closeIdle(most)
	// Others wait for the store, so that it opens even if this client leaves.
	t.store, t.err = x.stores.Open(context.WithoutCancel(ctx), user)
	if s, has := t.store.(interface{ Files() fs.FS }); has {
		t.options.Files = s.Files()
	}
	close(t.opened)
	if t.err != nil {
		x.release(t)
	}
	return t, true, t.err
}

// use notes one more request. The caller holds mu.
func (x *Server) use(t *tenant) {
	t.uses++
	if t.timer != nil {
		t.timer.Stop()
	}
}

// failed returns why the store cannot answer: it did not open, or works no more. It is nil until that is known.
func (t *tenant) failed() error {
	select {
	case <-t.opened:
	default:
		return nil
	}
	if t.err != nil {
		return t.err
	}
	return t.store.Alive()
}

// unavailable returns why a request that failed may succeed later.
func (t *tenant) unavailable() error {
	if err := t.failed(); err != nil {
		return err
	}
	return t.store.Failing()
}

func (x *Server) release(t *tenant) {
	x.mu.Lock()
	t.uses--
	goes := t.uses == 0 && (t.failed() != nil || x.tenants[t.user] != t || x.ended.Err() != nil)
	switch {
	case goes:
		x.forget(t)
	case t.uses == 0:
		t.since = time.Now()
		t.timer = time.AfterFunc(x.o.Idle, func() { x.closeUnused(t) })
	}
	x.mu.Unlock()
	if goes {
		x.closeTenant(t)
	}
}

// forget makes the next request of a user open the store anew. The caller holds mu.
func (x *Server) forget(t *tenant) {
	if x.tenants[t.user] == t {
		delete(x.tenants, t.user)
	}
}

// closeUnused closes a store that nobody has used for a while, after its daily garbage collection.
func (x *Server) closeUnused(t *tenant) {
	x.mu.Lock()
	goes := x.tenants[t.user] == t && t.uses == 0
	if goes {
		x.forget(t)
	}
	x.mu.Unlock()
	if !goes {
		return
	}
	if _, err := t.store.Engine().Collect(x.ended, ctxdir.CollectOptions{All: true, IfDue: true}); err != nil && x.ended.Err() == nil {
		x.o.API.Log.Warn("garbage collection failed", "user", t.user, "error", err)
	}
	x.closeTenant(t)
}

// closeIdle closes stores that nobody uses, the longest idle ones first, as long as there are more than most.
func (x *Server) closeIdle(most int) {
	for {
		x.mu.Lock()
		var oldest *tenant
		for _, t := range x.tenants {
			if t.uses == 0 && (oldest == nil || t.since.Before(oldest.since)) {
				oldest = t
			}
		}
		if len(x.tenants) <= most || oldest == nil {
			x.mu.Unlock()
			return
		}
		x.forget(oldest)
		oldest.timer.Stop()
		x.mu.Unlock()
		x.closeTenant(oldest)
	}
}

// closeTenant closes a store that no request uses, nor will.
func (x *Server) closeTenant(t *tenant) {
	for _, s := range t.servers {
		if s != nil {
			s.Close()
		}
	}
	if t.store == nil {
		return
	}
	if err := t.store.Close(); err != nil && t.failed() == nil {
		x.o.API.Log.Error("failed to close a store", "user", t.user, "error", err)
	}
}

// open returns the number of open stores.
func (x *Server) open() float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return float64(len(x.tenants))
}

// server returns the server for a scope. Each has its own search index and followers, so it begins with its first request.
func (t *tenant) server(s users.Scope) http.Handler {
	i, o := 0, t.options
	if s == users.Write {
		i = 1
	} else {
		o.ReadOnly = true
	}
	t.once[i].Do(func() {
		made, err := api.New(t.store.Engine(), o)
		if err != nil {
			panic(err) // the options were those of nobody's server
		}
		t.servers[i] = made
	})
	return t.servers[i]
}
