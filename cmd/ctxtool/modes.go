package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

var modes = []string{ctxdir.StorageLocal, ctxdir.StorageServer}

// projectPath is a project as settings name it: a folder of this machine by its whole path.
func projectPath(name string) string {
	if info, err := os.Stat(name); name != "" && err == nil && info.IsDir() {
		if abs, err := filepath.Abs(name); err == nil {
			return abs
		}
	}
	return name
}

// heldContext returns a context that is here, or that only a server holds.
func (a *app) heldContext(s *ctxdir.Store, ref string) (uuid.UUID, error) {
	id, err := resolve(s, ref)
	if !errors.Is(err, ctxdir.ErrNotExist) {
		return id, err
	}
	if id, perr := uuid.Parse(ref); perr == nil {
		return id, nil
	}
	return id, err
}

// setModes sets the modes of contexts, of projects, or of the store.
func setModes(ctx context.Context, s *ctxdir.Store, to []ctxdir.Mode) error {
	return s.Configure(ctx, func(set *ctxdir.Settings) error {
		for _, m := range to {
			if m.Context == uuid.Nil && m.Project == "" {
				set.StorageMode = m.Mode
				continue
			}
			set.Modes = slices.DeleteFunc(set.Modes, func(x ctxdir.Mode) bool { return x.Context == m.Context && x.Project == m.Project })
			if m.Mode != "" {
				set.Modes = append(set.Modes, m)
			}
		}
		return nil
	})
}
