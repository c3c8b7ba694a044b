package migrate

import (
	"fmt"

	"github.com/ctxdir/ctxdir/internal/legacy"
)

// ValidationError lists how a migrated context would differ from the legacy one. The migration changed nothing.
type ValidationError struct {
	Discrepancies []legacy.Discrepancy // the first 1,000
	Count         int64                // number of all discrepancies
}

const maxDiscrepancies = 1000

func (e *ValidationError) Error() string {
	if e.Count == 1 {
		return "the migrated context differs from the legacy one: " + e.Discrepancies[0].String()
	}
	return fmt.Sprintf("the migrated context differs from the legacy one in %d places, the first: %s", e.Count, e.Discrepancies[0])
}

func (e *ValidationError) add(d legacy.Discrepancy) {
	if e.Count++; len(e.Discrepancies) < maxDiscrepancies {
		e.Discrepancies = append(e.Discrepancies, d)
	}
}
