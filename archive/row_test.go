package archive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestRowCountsReferences: a row tells of references that the envelope, edited by hand, does not count: a sweep
// believes the row.
func TestRowCountsReferences(t *testing.T) {
	for spelled, want := range map[string]int{
		`{"$blob":"SUM","size":1}`:                          1,
		`[{"$blob":"SUM","size":1},{"$bl\u006fb" : "SUM"}]`: 2,
		`"SUM"`: 0,
	} {
		b := fmt.Sprintf(
			`{"ctxdir":"message/1","id":"%s","line":"%[1]s","position":0,"prev":null,"stored_at":"2026-01-02T03:04:05Z","message":{"x":%s}}`,
			uuid.New(),
			strings.ReplaceAll(spelled, "SUM", strings.Repeat("a1", 32)),
		)
		if r, err := rowOf([]byte(b)); err != nil || r.Payloads != want {
			t.Errorf("%s: %d, %v", spelled, r.Payloads, err)
		}
	}
}
