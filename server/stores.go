package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// Folders keeps a store for each user in a folder, and makes it with the first request. It needs no database.
func Folders(dir string) Stores {
	return func(_ context.Context, user uuid.UUID) (*ctxdir.Store, error) {
		at := filepath.Join(dir, filepath.FromSlash(users.StorePath(user)))
		if _, err := os.Stat(filepath.Dir(at)); err != nil { // the user may have been removed since
			return nil, fmt.Errorf("user %s: %w", user, err)
		}
		return ctxdir.Init(at)
	}
}
