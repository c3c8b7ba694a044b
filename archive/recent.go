package archive

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
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

// frame is the content of a message frame. The last user to release it makes its memory available for another frame:
// a walk through a segment decodes one after the other.
type frame struct {
	content []byte
	users   atomic.Int32
}

// framePool holds the memory of frames of up to [FrameSize] that nobody uses.
var framePool = sync.Pool{New: func() any { return new(frame) }}

func (f *frame) take() { f.users.Add(1) }

func (f *frame) release() {
	if f.users.Add(-1) == 0 && cap(f.content) <= FrameSize {
		framePool.Put(f)
	}
}

// own returns a row's envelope in memory that survives release. A kept message must not retain its frame unless it
// fills it.
func (f *frame) own(r *Row) ([]byte, error) {
	b, err := envelope(r, f.content)
	if cap(f.content) <= FrameSize {
		b = bytes.Clone(b)
	}
	return b, err
}
