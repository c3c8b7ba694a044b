package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// BoundOnly makes [Server.Bound] hold only for some requests. Those of the test itself may be slow beside load.
func (x *Server) BoundOnly(only func(r *http.Request) bool) { x.bounds.only = only }

// Bound makes the limits of a server smaller. Zero leaves one as it is.
func (x *Server) Bound(patience time.Duration, connections int, behind int64) {
	if patience > 0 {
		x.bounds.patience = patience
	}
	if connections > 0 {
		x.bounds.connections = connections
	}
	if behind > 0 {
		x.bounds.behind = behind
	}
}

// StateOf is the live state of a context.
var StateOf = stateOf

// Feed begins to follow a context, and leaves at once.
func (x *Server) Feed(ctx context.Context, id uuid.UUID) error {
	_, _, leave, err := x.feeds.follow(ctx, id)
	if err == nil {
		leave()
	}
	return err
}

// OnEnd calls f when an operation has ended.
func (x *Server) OnEnd(f func(r *http.Request)) { x.onEnd = f }

// Patterns are the method and path of each operation but those that follow.
func Patterns() (all []string) {
	for i := range operations {
		if !operations[i].upgrades {
			all = append(all, operations[i].pattern())
		}
	}
	return all
}
