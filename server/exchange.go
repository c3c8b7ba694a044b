package server

import (
	"context"
	"errors"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/ctxdir/ctxdir/search"
	"github.com/ctxdir/ctxdir/server/chat"
	"github.com/ctxdir/ctxdir/server/meter"
)

// UsageStores are [Stores] that have a place for what is kept of requests in local mode.
type UsageStores interface {
	Usage() meter.Log
}

// Usage implements [UsageStores].
func (dir Folders) Usage() meter.Log { return meter.Files(dir) }

// Usage implements [UsageStores].
func (d *Database) Usage() meter.Log { return meter.InDatabase(d.pool) }

// newChat returns the exchange of the server.
func newChat(stores Stores, o Options) *chat.Chat {
	c := chat.Options{Model: o.Model, MaxTokens: o.MaxTokens, Log: o.API.Log}
	if s, has := stores.(UsageStores); has {
		c.Usage = s.Usage()
	}
	return chat.New(c)
}

// exchange returns how the exchange answers the user of a tenant.
func (x *Server) exchange(t *tenant) api.Exchange {
	return func(ctx context.Context, conn *websocket.Conn, index func(ctx context.Context) (*search.Index, error)) {
		conn.SetReadLimit(exchange.MaxFrame)
		u := chat.User{ID: t.user, Store: t.store.Engine(), Index: index, Full: t.full, Hold: func() func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.use(t)
			return func() { x.release(t) }
		}}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(x.ended, stop)()
		defer context.AfterFunc(ctx, func() {
			_ = conn.Close(websocket.StatusGoingAway, "the server is shutting down, or the token has ended")
		})()
		if err := x.chat.Serve(ctx, socket{conn}, u); errors.Is(err, chat.ErrProtocol) {
			_ = conn.Close(websocket.StatusPolicyViolation, err.Error())
		}
	}
}

// socket is a connection to an agent.
type socket struct{ conn *websocket.Conn }

// Read implements [chat.Conn]. A binary message is none of the exchange. The end of ctx would cut the connection without a reason:
// what ends ctx closes it.
func (s socket) Read(ctx context.Context) ([]byte, error) {
	kind, b, err := s.conn.Read(context.WithoutCancel(ctx))
	if err == nil && kind != websocket.MessageText {
		b = nil
	}
	return b, err
}

// Write implements [chat.Conn].
func (s socket) Write(ctx context.Context, b []byte) error {
	return s.conn.Write(ctx, websocket.MessageText, b)
}
