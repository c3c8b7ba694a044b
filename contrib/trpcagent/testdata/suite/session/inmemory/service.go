package inmemory

import (
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/trpcagent"
	"trpc.group/trpc-go/trpc-agent-go/session/summary"
)

type SessionService struct {
	*trpcagent.SessionService
	store *ctxdir.Store
	dir   string
}

type ServiceOpt = trpcagent.Option

func WithSummarizer(s summary.SessionSummarizer) ServiceOpt { return trpcagent.WithSummarizer(s) }

func NewSessionService(options ...ServiceOpt) *SessionService {
	dir, err := os.MkdirTemp("", "swap")
	if err != nil {
		panic(err)
	}
	store, err := ctxdir.Init(filepath.Join(dir, "store"))
	if err != nil {
		panic(err)
	}
	return &SessionService{trpcagent.NewSessionService(store, options...), store, dir}
}
