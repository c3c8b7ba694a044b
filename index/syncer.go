package index

import (
	"cmp"
	"sync"
)

// syncer lets concurrent committers share syncs: each waits for a sync that began after it asked.
type syncer struct {
	turn sync.Mutex // held by the committer that syncs

	mu      sync.Mutex // guards the rest
	begun   uint64     // syncs; all of them have ended while nobody holds turn
	covered int64      // a successful sync covers the file up to here
	failed  error      // the first failure: it stays, since a failed sync is never retried
	settled bool       // a rotation synced the file after its last record
}

// wait returns nil once a sync that began after the call has succeeded. The caller wrote or read the file up to end.
func (s *syncer) wait(datasync func() error, end int64) error {
	s.mu.Lock()
	need := s.begun + 1
	s.mu.Unlock()
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun < need && s.failed == nil && !s.settled {
		s.begun++
		s.mu.Unlock()
		err := datasync()
		s.mu.Lock()
		s.failed = cmp.Or(s.failed, err)
	}
	if s.failed == nil {
		s.covered = max(s.covered, end)
	}
	return s.failed
}

// covers reports whether the file's content up to end is durable.
func (s *syncer) covers(end int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil && (s.settled || end <= s.covered)
}

// settle notes that the file was synced after its last record.
func (s *syncer) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = true
}

// fail makes every later wait fail.
func (s *syncer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

func (s *syncer) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
