package journal

import (
	"cmp"
	"sync"
)

// syncer lets concurrent committers share syncs: each waits for a sync that began after it asked. The first committer
// that asks while a sync runs begins the next one; the others that ask meanwhile wait for that.
type syncer struct {
	mu      sync.Mutex
	running *syncRound // nil if none
	next    *syncRound // the one that begins afterwards; nil if nobody waits for it
	covered int64      // a successful sync covers the file up to here
	failed  error      // the first failure: it stays, since a failed sync is never retried
}

// syncRound is one sync.
type syncRound struct {
	ended chan struct{} // closed at its end; nil while nobody waits for that
}

// await waits for the end of a round. The caller holds mu, which await releases meanwhile.
func (s *syncer) await(r *syncRound) {
	if r.ended == nil {
		r.ended = make(chan struct{})
	}
	ended := r.ended
	s.mu.Unlock()
	<-ended
	s.mu.Lock()
}

// wait returns nil once a sync that began after the call has succeeded. The caller wrote or read the file up to end.
func (s *syncer) wait(datasync func() error, end int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.next; r != nil {
		s.await(r)
	} else {
		s.sync(datasync)
	}
	if s.failed == nil {
		s.covered = max(s.covered, end)
	}
	return s.failed
}

// sync syncs after the running sync, for all that ask until then. The caller holds mu.
func (s *syncer) sync(datasync func() error) {
	r := &syncRound{}
	if s.running != nil {
		s.next = r
		s.await(s.running)
	}
	s.running, s.next = r, nil
	if s.failed == nil {
		s.mu.Unlock()
		err := datasync()
		s.mu.Lock()
		s.failed = cmp.Or(s.failed, err)
	}
	s.running = nil
	if r.ended != nil {
		close(r.ended)
	}
}

// covers reports whether the file's content up to end is durable.
func (s *syncer) covers(end int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil && end <= s.covered
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
