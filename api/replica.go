package api

import (
	"net/http"

	"github.com/ctxdir/ctxdir/replica"
)

// callReplica answers one call of another store: see docs/SYNC.md.
func (x *Server) callReplica(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).done(); err != nil {
		return err
	}
	if err := wantMedia(r, replica.MediaType); err != nil {
		return err
	}
	w.Header().Set("Content-Type", replica.MediaType)
	l := replica.Limits{Bytes: x.o.MaxBody, ReadOnly: x.o.ReadOnly, Full: x.full()}
	return replica.Serve(r.Context(), replica.NewFolder(x.store), l, r.Body, w)
}
