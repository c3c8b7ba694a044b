package migrate

import (
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
)

// differences is the error of a migrated context that would differ from the legacy one. Nothing was changed.
type differences struct {
	lines []string // the first 1,000
	count int64    // of all differences
}

const maxDifferences = 1000

func (e *differences) Error() string {
	if e.count == 1 {
		return "the migrated context differs from the legacy one: " + e.lines[0]
	}
	return fmt.Sprintf("the migrated context differs from the legacy one in %d places, the first: %s", e.count, e.lines[0])
}

func (e *differences) add(d legacy.Discrepancy) {
	if e.count++; len(e.lines) < maxDifferences {
		e.lines = append(e.lines, d.String())
	}
}

// wrap is [engine.Wrap]. An error that lists differences becomes an [engine.ErrConflict] with these lines.
func wrap(at engine.Error, err error) error {
	var found *differences
	if errors.As(err, &found) {
		at.Differs, err = found.lines, engine.Mark(err, engine.ErrConflict)
	}
	return engine.Wrap(at, err)
}
