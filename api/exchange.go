package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// exchangeOperation is not in openapi.yaml, which has no messages of WebSockets: see docs/EXCHANGE.md.
var exchangeOperation = operation{
	method: "GET", path: "/v1/exchange", writes: true, long: true, upgrades: true, serve: (*Server).exchange,
}

// mcpOperation is not in openapi.yaml: it has the messages of another protocol.
var mcpOperation = operation{method: "POST", path: "/mcp", long: true, serve: (*Server).mcp}

// mcp passes a request on to [Options.MCP].
func (x *Server) mcp(w http.ResponseWriter, r *http.Request) error {
	x.o.MCP.ServeHTTP(w, r)
	return nil
}

// exchange upgrades the connection. A token that only reads cannot use it.
func (x *Server) exchange(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).done(); err != nil {
		return err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		return problem(Code{codeInvalid.Name, http.StatusUpgradeRequired, codeInvalid.Title}, "this operation is a WebSocket")
	}
	if x.followers.Add(1) > maxFollowers {
		x.followers.Add(-1)
		return problem(codeUnavailable, "the server has reached its limit of %d connections", maxFollowers)
	}
	defer x.followers.Add(-1)
	conn, err := websocket.Accept(plain(w), r, &websocket.AcceptOptions{
		Subprotocols: []string{"ctxdir.v1"}, CompressionMode: websocket.CompressionDisabled,
		InsecureSkipVerify: true, // the guard has verified the origin
	})
	if err != nil {
		panic(http.ErrAbortHandler) // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // closed already, unless the client is gone
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(x.ended, end)()
	x.o.Exchange(ctx, conn, x.index.open)
	return nil
}
