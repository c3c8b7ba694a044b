package storetest_test

import (
	"testing"

	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestDamageArchived is TestDamage for archived messages. What is damaged is unavailable before and after a repair,
// under its id where that is known, and nothing else is.
func TestDamageArchived(t *testing.T) {
	for _, kind := range archivedKinds {
		_ = kit.NewArchivedPatient(t, kind)
		for _, d := range kit.PackDamages {
			if kind == d.But {
				continue
			}
			t.Run(d.Name+", "+kind, func(t *testing.T) {
				t.Parallel()
				p := kit.NewArchivedPatient(t, kind)
				wants := map[uuid.UUID]bool{}
				for _, id := range d.Do(p) {
					wants[id] = true
				}
				if kind == "half" {
					delete(wants, p.Want["main"][27].ID) // its newer version is in a file
				}
				p.CompareLosses(&d, wants)
			})
		}
	}
}
