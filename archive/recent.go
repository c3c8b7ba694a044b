package archive

import (
	"slices"
	"sync"
)

// recent keeps the few values that were used last. It is safe for concurrent use; its values never change.
type recent[K comparable, V any] struct {
	limit   int
	kept    func(V) // if not nil, put calls it for the value, and get for the one that it returns
	evicted func(V) // if not nil, put and clear call it for each value that they remove
	mu      sync.Mutex
	used    []recentItem[K, V] // most recently used first
}

type recentItem[K comparable, V any] struct {
	key   K
	value V
}

func (r *recent[K, V]) get(key K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, k := range r.used {
		if k.key == key {
			copy(r.used[1:i+1], r.used[:i])
			r.used[0] = k
			if r.kept != nil {
				r.kept(k.value)
			}
			return k.value, true
		}
	}
	return v, false
}

func (r *recent[K, V]) put(key K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept != nil {
		r.kept(v)
	}
	if len(r.used) < r.limit {
		r.used = append(r.used, recentItem[K, V]{})
	} else if r.evicted != nil {
		r.evicted(r.used[len(r.used)-1].value)
	}
	copy(r.used[1:], r.used)
	r.used[0] = recentItem[K, V]{key, v}
}

// clear removes the values of some keys.
func (r *recent[K, V]) clear(of func(K) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = slices.DeleteFunc(r.used, func(k recentItem[K, V]) bool {
		if goes := of(k.key); !goes {
			return false
		}
		if r.evicted != nil {
			r.evicted(k.value)
		}
		return true
	})
}

// blockOf is a block of a segment.
type blockOf struct {
	s *Segment
	n int64
}

// The values that all segments together keep: a context has some fifty of them, and a process many contexts. A common frame
// has 128 KiB, and the rows of its messages as much.
var (
	recentFrames = recent[blockOf, *frame]{limit: 64, kept: (*frame).take, evicted: (*frame).release}
	recentRows   = recent[blockOf, *blockRows]{limit: 128}
)
