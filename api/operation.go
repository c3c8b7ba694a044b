package api

import (
	"net/http"
	"time"
)

// ndjson is the media type of JSON Lines.
const ndjson = "application/x-ndjson"

// maxDocument bounds the body of a request that has no messages, in bytes.
const maxDocument = 1 << 20

// operation is one operation of openapi.yaml.
type operation struct {
	method, path string
	public       bool // needs no token: it tells nothing about the store
	writes       bool // changes the store
	large        bool // its body may have messages
	long         bool // ends when the client or the work does, not after a minute
	upgrades     bool // to a WebSocket
	serve        func(x *Server, w http.ResponseWriter, r *http.Request) error
}

func (op *operation) pattern() string { return op.method + " " + op.path }

// timeout bounds the time of a request.
func (op *operation) timeout() time.Duration {
	if op.long {
		return 24 * time.Hour
	}
	return time.Minute
}

// Operation is a method and a path of the API; parts of the path in braces are parameters.
type Operation struct {
	Method, Path string
	Public       bool // needs no token
	Writes       bool // answered with 403 by a server that is read-only
}

// Operations returns all operations of the API.
func Operations() []Operation {
	all := make([]Operation, len(operations))
	for i, op := range operations {
		all[i] = Operation{op.method, op.path, op.public, op.writes}
	}
	return all
}
