// Package held keeps things open that are used again and again.
package held

import (
	"io"
	"sync"
)

// Things are open things, by key: a bounded number of them, beside those in use. A thing is closed by the last of those who use it; the table is one
// of them. The zero value is ready.
type Things[K comparable, T Thing] struct {
	mu  sync.Mutex
	all map[K]T
}

// Thing is what can be held: a pointer to a struct that embeds [Use].
type Thing interface {
	comparable
	io.Closer
	use() *Use
}

// Use counts who uses a thing.
type Use struct {
	table *sync.Mutex // guards users; nil for a thing that is in no table
	users int
	last  func() error
}

func (u *Use) use() *Use { return u }

// Release is for who no longer uses the thing.
func (u *Use) Release() {
	if u.table == nil {
		return
	}
	u.table.Lock()
	defer u.table.Unlock()
	u.drop()
}

func (u *Use) drop() {
	if u.users--; u.users == 0 {
		_ = u.last() // things that are written to are synced, and need no good end
	}
}

// Most bounds the things that a table keeps open.
const Most = 64

// Get returns the thing of a key, for Release when it is no longer used. open opens it if need be.
func (t *Things[K, T]) Get(key K, open func() (T, error)) (T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x, ok := t.all[key]; ok {
		x.use().users++
		return x, nil
	}
	x, err := open()
	if err != nil {
		return x, err
	}
	for other := range t.all {
		if len(t.all) < Most {
			break
		}
		t.drop(other) // any: there are seldom that many
	}
	if t.all == nil {
		t.all = map[K]T{}
	}
	t.all[key] = x
	*x.use() = Use{&t.mu, 2, x.Close}
	return x, nil
}

// drop lets go of the thing of a key. The caller holds mu.
func (t *Things[K, T]) drop(key K) {
	x := t.all[key]
	delete(t.all, key)
	x.use().drop()
}

// Drop lets go of a thing, unless its key has another one by now.
func (t *Things[K, T]) Drop(key K, x T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, ok := t.all[key]; ok && now == x {
		t.drop(key)
	}
}

// Only lets go of the things that are not to be kept.
func (t *Things[K, T]) Only(keep func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.all {
		if !keep(key) {
			t.drop(key)
		}
	}
}

// Clear lets go of all things.
func (t *Things[K, T]) Clear() { t.Only(func(K) bool { return false }) }
