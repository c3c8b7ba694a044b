package server

import (
	"net/http"
	"sync"
	"time"
)

// quota compares how much room a store takes with how much it may.
type quota struct {
	mu       sync.Mutex
	most     int64 // in bytes; 0 for no bound
	size     int64 // when it was measured
	grown    int64 // at most, since
	measured time.Time
}

// How long a measured size counts. Until then, what requests bring is added. Somebody who has too much may be removing it.
const (
	remeasure     = time.Minute
	remeasureFull = 5 * time.Second
)

// expect notes a request, and what the user may have.
func (t *tenant) expect(r *http.Request, most int64) {
	q := &t.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = most
	q.grown += max(r.ContentLength, 0)
}

// full reports whether the store may not grow any more. One that cannot be measured may: an error of the disk is for whoever
// asks for the content.
func (t *tenant) full() bool {
	q := &t.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.most == 0 {
		return false
	}
	age := time.Since(q.measured)
	if guessed := q.size <= q.most && q.size+q.grown > q.most; guessed || age > remeasure || q.size > q.most && age > remeasureFull {
		size, err := t.store.Size()
		if err != nil {
			return false
		}
		q.size, q.grown, q.measured = size, 0, time.Now()
	}
	return q.size >= q.most
}
