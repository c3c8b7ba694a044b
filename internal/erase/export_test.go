package erase

import (
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/google/uuid"
)

// GapFinder returns what recognises the lines of messages to erase in a trash item.
func GapFinder(ids map[uuid.UUID]bool) func(line []byte) (trash.Gap, bool) {
	return (&eraser{ids: ids}).gapFinder()
}
