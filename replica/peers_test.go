package replica_test

import (
	"context"
	"io"
	"testing"

	"github.com/ctxdir/ctxdir/ctxdirtest"
	"github.com/ctxdir/ctxdir/replica"
	"github.com/ctxdir/ctxdir/replica/peertest"
	"github.com/google/uuid"
)

func TestFolderIsAPeer(t *testing.T) {
	peertest.Test(t, func(t *testing.T) replica.Peer { return replica.NewFolder(ctxdirtest.New(t)) })
}

func TestClientIsAPeer(t *testing.T) {
	peertest.Test(t, func(t *testing.T) replica.Peer {
		f := replica.NewFolder(ctxdirtest.New(t))
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := replica.ServePipe(context.Background(), f, replica.Limits{}, inR, outW)
			_ = outW.CloseWithError(err)
			done <- err
		}()
		t.Cleanup(func() {
			_ = inW.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return replica.NewClient(replica.NewPipe(outR, inW), uuid.Nil)
	})
}
