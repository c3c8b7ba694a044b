package engine

import (
	"errors"
	"fmt"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/google/uuid"
)

// SyncStaged makes a staged context durable, and blobs that were stored without a sync.
func (s *Store) SyncStaged(id uuid.UUID, blobs map[blob.Sum]bool) error {
	if err := s.FS.SyncAll(); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for sum := range blobs {
		if durable, err := s.Blobs.Share(sum, true); !durable {
			return errors.Join(fmt.Errorf("%w: payload %s", ErrDurability, sum), err)
		}
	}
	return SyncTree(s.FS, ctxfolder.StagingFolder(id))
}
