package taskstore_test

import (
	"os"
	"path/filepath"

	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"
	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/a2a"
)

func init() {
	taskstore.New = func(user taskstore.Authenticator) taskstore.Store {
		dir, err := os.MkdirTemp("", "swap")
		if err != nil {
			panic(err)
		}
		store, err := ctxdir.Init(filepath.Join(dir, "store"))
		if err != nil {
			panic(err)
		}
		return a2a.NewStore(store, user)
	}
}
