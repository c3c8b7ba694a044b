package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
)

// copyRecord is a context that backup or restore copied.
type copyRecord struct {
	Record   string `json:"record"`
	Context  string `json:"context"`
	Path     string `json:"path"`
	Messages int64  `json:"messages"` // copied now
	Bytes    int64  `json:"bytes"`
	Current  bool   `json:"current,omitempty"` // the copy was there already
	Missing  int64  `json:"missing,omitempty"`
}

// copyVerb says what copying contexts between stores is: its record, the label of its progress, and its verb.
type copyVerb struct{ record, label, verb string }

func (a *app) copyContexts(ctx context.Context, from *ctxdir.Store, ids []uuid.UUID, to *ctxdir.Store, v copyVerb) error {
	var missing int64
	current := 0
	failed, err := eachContext(ctx, a, v.label, ids, func(id uuid.UUID) (ctxdir.BackupResult, error) {
		return from.Backup(ctx, id, to)
	}, func(id uuid.UUID, done ctxdir.BackupResult) error {
		if done.Missing > 0 {
			missing += done.Missing
			a.warn(errorRecord{Error: fmt.Sprintf("context %s: left out %s: %v", id, plain.Count(done.Missing, "item"), done.Problem)})
		}
		if done.Current {
			current++
			if !a.json {
				return nil
			}
		}
		path := filepath.Join(to.Info().Path, done.Path)
		return a.result(copyRecord{v.record, id.String(), path, done.Messages, done.Bytes, done.Current, done.Missing},
			"%s  %s, %s", path, plain.Count(done.Messages, "message"), plain.Size(done.Bytes))
	})
	if current > 0 {
		a.note("already up to date: %s", plain.Count(current, "context"))
	}
	if err == nil {
		err = failures(v.verb, failed, len(ids))
	}
	if err == nil && missing > 0 {
		err = problems("", "left out %s that cannot be read", plain.Count(missing, "item"))
	}
	return err
}
