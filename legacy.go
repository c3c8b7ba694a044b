package ctxdir

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/google/uuid"
)

// MigrateOptions configures a migration.
type MigrateOptions struct {
	DryRun   bool                    // validate, and change nothing
	Progress func(done, total int64) // receives the bytes read, done and in all; may be nil
}

// RollbackOptions configures a rollback.
type RollbackOptions struct {
	To       string                  // the path of the legacy file to be written; empty for that of the original
	Force    bool                    // leave out messages that cannot be read, and ignore what changed since the migration
	Progress func(done, total int64) // receives the messages written, done and in all; may be nil
}

// MigrateResult describes a migration.
type MigrateResult struct {
	Context  uuid.UUID
	Path     string // of the legacy file or folder
	Backup   string // where the legacy file is now; empty in a dry run
	Branches int
	Messages int64
	Bytes    int64 // of the legacy files
	Again    bool  // the context had been migrated before, and only the legacy file was renamed
}

// RollbackResult describes a rollback.
type RollbackResult struct {
	Context  uuid.UUID
	Path     string // of the legacy file or folder
	Messages int64
	Missing  int64     // messages that could not be read and are not in the legacy file
	Trashed  TrashItem // the context, if it moved to the trash
}

// Migrate converts a legacy file, or the folder of a split one, to a context. It converts the context back, and
// compares the result with the original, before it moves the context to its path. Then it adds the suffix .old to the
// legacy file. A legacy file ID.json in the store becomes the context ID; others contain their id. A second call
// continues an interrupted migration.
//
// Migrate changes nothing, and fails with:
//
//   - [ErrInvalid] if the path is not a legacy context
//   - [ErrDamaged] if the file cannot be read to its end
//   - [ErrTooLarge] if a message is too large
//   - [ErrConflict] if the context would differ; [Error].Differs says how
//   - [ErrExist] if another context has the id
func (s *Store) Migrate(ctx context.Context, path string, o MigrateOptions) (MigrateResult, error) {
	m, err := migrate.Convert(ctx, s.e, path, migrate.Options{DryRun: o.DryRun, Progress: o.Progress})
	return MigrateResult{
		Context: m.Context, Path: m.Path, Backup: m.Backup, Branches: m.Branches, Messages: m.Messages, Bytes: m.Bytes, Again: m.Again,
	}, err
}

// Rollback writes a context to a legacy file at o.To, which must not exist. The file includes branches and messages
// that were added after the migration. Without o.To, Rollback restores the original legacy file to its path, and moves
// the context to the trash. It refuses with [ErrConflict], before it changes anything, if the context changed since the
// migration and o.Force is not set.
func (s *Store) Rollback(ctx context.Context, id uuid.UUID, o RollbackOptions) (RollbackResult, error) {
	r, err := s.rollback(ctx, id, o.To, migrate.RollbackOptions{Force: o.Force, Progress: o.Progress})
	return RollbackResult{r.Context, r.Path, r.Messages, r.Missing, trashItem(r.Trashed)}, err
}

func (s *Store) rollback(ctx context.Context, id uuid.UUID, to string, o migrate.RollbackOptions) (migrate.RollbackResult, error) {
	if to == "" {
		return migrate.RestoreLegacy(ctx, s.e, id, o)
	}
	c, err := s.e.Context(ctx, id)
	if err != nil {
		return migrate.RollbackResult{}, err
	}
	r, err := migrate.Rollback(ctx, c, to, o)
	return r, errors.Join(err, c.Close())
}
