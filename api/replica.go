package api

import (
	"net/http"
	"strings"

	"github.com/ctxdir/ctxdir"
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
	v := x.store.of(r)
	folder := replica.NewFolder(v.s)
	if v.limited {
		folder.Limit(strings.Join(v.projects, "\n"), func(m *ctxdir.Metadata) bool { return v.has(m.Labels) })
		l.ReadOnly = true // a client chooses the ids of contexts, and refers to payloads that may be of others
	}
	return replica.Serve(r.Context(), folder, l, r.Body, w)
}
