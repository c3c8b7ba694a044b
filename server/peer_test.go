package server_test

import (
	"testing"

	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/replica/peertest"
	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// TestUserIsAPeer runs the tests of a peer on the store of a user, each on that of another one.
func TestUserIsAPeer(t *testing.T) { each(t, testUserIsAPeer) }

func testUserIsAPeer(t *testing.T, at backend) {
	k := newKit(t, at, server.Options{})
	peertest.Test(t, func(t *testing.T) replica.Peer {
		u, err := k.users.Add(t.Context(), uuid.NewString())
		must(t, err)
		h := replica.NewHTTP(k.url+"/v1/replica", k.token(u.Name, users.TokenOptions{}))
		t.Cleanup(func() { _ = h.Close() })
		return replica.NewClient(h, uuid.Nil)
	})
}
