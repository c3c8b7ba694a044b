package ctxdir

import (
	"context"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
)

// Settings are the settings of a store. They are in ctxdir.json, and apply to every program that uses the store.
type Settings struct {
	// TextThreshold is the length, in bytes, from which a text moves to a blob; see [WithTextThreshold]. A store that is
	// open keeps the threshold it was opened with.
	TextThreshold int64

	// ArchiveAfter and KeepLast let [Store.Collect] archive by itself: messages that were stored at least ArchiveAfter
	// ago and are not among the newest KeepLast messages of a branch. If one of them is 0, only the other counts; if
	// both are, nothing is archived.
	ArchiveAfter time.Duration
	KeepLast     int64

	// TrashGrace is how long removed branches, contexts and blobs can be restored; 0 means a week.
	TrashGrace time.Duration
}

// Settings reads the settings of the store.
func (s *Store) Settings() (Settings, error) {
	e, err := s.e.ReadSettings()
	return settings(e), wrap(err)
}

func settings(e engine.Settings) Settings {
	o, _ := e.ArchiveOptions()
	s := Settings{TextThreshold: engine.DefaultTextThreshold, ArchiveAfter: o.StoredFor, KeepLast: o.KeepLast, TrashGrace: e.Grace()}
	if e.TextThreshold != nil {
		s.TextThreshold = *e.TextThreshold
	}
	return s
}

// Configure changes the settings of the store. Other programs may change them at the same time: change receives the
// present ones. An error of change is returned, and nothing changes. Times are rounded up to seconds. Configure fails
// with [ErrInvalid] if a time or KeepLast is negative.
func (s *Store) Configure(ctx context.Context, change func(*Settings) error) error {
	return wrap(s.e.Configure(ctx, func(e *engine.Settings) error {
		now := settings(*e)
		threshold := now.TextThreshold
		if err := change(&now); err != nil {
			return err
		}
		if now.ArchiveAfter < 0 || now.KeepLast < 0 || now.TrashGrace < 0 {
			return fmt.Errorf("%w: a setting is negative", engine.ErrInvalid)
		}
		if now.TextThreshold != threshold {
			e.TextThreshold = &now.TextThreshold
		}
		e.ArchiveAfter, e.KeepLast, e.TrashGrace = seconds(now.ArchiveAfter), now.KeepLast, seconds(now.TrashGrace)
		return nil
	}))
}

// seconds rounds a time up to seconds.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
