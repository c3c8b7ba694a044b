package archive

import "sync"

// recent keeps the few values that were used last. It is safe for concurrent use; its values never change.
type recent[K comparable, V any] struct {
	limit int
	mu    sync.Mutex
	used  []recentItem[K, V] // most recently used first
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
			return k.value, true
		}
	}
	return v, false
}

func (r *recent[K, V]) put(key K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.used) < r.limit {
		r.used = append(r.used, recentItem[K, V]{})
	}
	copy(r.used[1:], r.used)
	r.used[0] = recentItem[K, V]{key, v}
}
