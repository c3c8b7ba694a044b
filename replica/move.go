package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Move moves a context from one store of this machine to another one, and returns the number of its messages. It fails with
// [ctxdir.ErrConflict] if somebody wrote to the context meanwhile, and with [ctxdir.ErrDamaged] if the copy, or a part of the
// context, cannot be read: then the context stays.
//
// Crash order: the copy is durable, was read back, and shows the same, before the context goes to the trash. In between, both
// stores have it, and another Move brings them together.
func Move(ctx context.Context, from, to *Folder, id uuid.UUID) (messages int64, err error) {
	bring := func(o Options) (different bool, err error) {
		o.Contexts = []uuid.UUID{id}
		var failed error
		o.Report = func(r Synced) { different, failed = true, errors.Join(failed, r.Err) }
		_, err = Sync(ctx, from, to, o)
		return different, errors.Join(err, failed)
	}
	switch err = to.s.Use(ctx, id, func(*ctxdir.Context) error { return nil }); {
	case err == nil: // it was copied before, or came from there
		_, err = bring(Options{})
	case errors.Is(err, ctxdir.ErrNotExist):
		var done ctxdir.BackupResult
		if done, err = from.s.Backup(ctx, id, to.s); err == nil && done.Missing > 0 {
			err = fmt.Errorf("%w: the context stays: it has %d parts that cannot be read: %w", ctxdir.ErrDamaged, done.Missing, done.Problem)
		}
	}
	if err != nil {
		return 0, err
	}
	for f, err := range to.s.Check(ctx, ctxdir.CheckOptions{Contexts: []uuid.UUID{id}, ReadData: true}) {
		if err == nil && f.Severity == ctxdir.SeverityError {
			err = fmt.Errorf("%w: the context stays: its copy is damaged: %s: %s", ctxdir.ErrDamaged, f.Path, f.Detail)
		}
		if err != nil {
			return 0, err
		}
	}
	var at uint64
	err = from.s.Use(ctx, id, func(c *ctxdir.Context) error {
		at = c.Summary().Sequence
		return nil
	})
	if err != nil {
		return 0, err
	}
	different, err := bring(Options{DryRun: true})
	if err == nil && !different {
		err = to.s.Use(ctx, id, func(c *ctxdir.Context) error {
			messages = c.Summary().Messages
			return nil
		})
	}
	if err != nil {
		return 0, err
	}
	if !different {
		var results []Result
		results, err = from.Apply(ctx, []Change{{ID: id, Remove: true, Sequence: &at}}, nil)
		err = errors.Join(err, results[0].Err)
	}
	if different || errors.Is(err, ctxdir.ErrPosition) {
		return 0, fmt.Errorf("%w: the context stays: it was changed meanwhile; move it again", ctxdir.ErrConflict)
	}
	return messages, err
}
