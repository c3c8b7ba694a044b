package inmemory

import (
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/trpcagent"
)

type Saver struct {
	*trpcagent.Saver
}

func (s *Saver) WithMaxCheckpointsPerLineage(int) *Saver { return s }

func NewSaver() *Saver {
	dir, err := os.MkdirTemp("", "swap")
	if err != nil {
		panic(err)
	}
	store, err := ctxdir.Init(filepath.Join(dir, "store"))
	if err != nil {
		panic(err)
	}
	return &Saver{trpcagent.NewSaver(store)}
}
