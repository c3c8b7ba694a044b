package index

import (
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// TestStorable checks that a stored message can be read, whatever time the clock shows.
func TestStorable(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC),
		time.Date(2312, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		stored := storable(at)
		env := &message.Envelope{ID: uuid.New(), Line: uuid.New(), StoredAt: stored, Body: []byte(`{}`)}
		if got, err := message.Parse(env.AppendTo(nil)); err != nil || !got.StoredAt.Equal(stored) {
			t.Errorf("%v: %v, %v", at, got.StoredAt, err)
		}
		e := Entry{At: stored.UnixNano()}
		if !e.StoredAt().Equal(stored) || !e.Next().After(stored) {
			t.Errorf("%v: as %v, the next version at %v", at, e.StoredAt(), e.Next())
		}
		env.StoredAt = e.Next()
		if _, err := message.Parse(env.AppendTo(nil)); err != nil {
			t.Errorf("%v: a version of it: %v", at, err)
		}
		if at.Year() == 2026 && !stored.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("%v became %v", at, stored)
		}
	}
}
