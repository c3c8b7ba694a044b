// Package handles keeps frequently used files and folders open, up to a limit.
package handles

import (
	"io"
	"sync"
)

// Table holds open resources by key: a bounded number of them, plus those in use. The last user of a resource closes
// it; the table is one of its users. The zero value is ready to use.
type Table[K comparable, T Resource] struct {
	mu  sync.Mutex
	all map[K]T
}

// Resource is a resource that the table can hold: a pointer to a struct that embeds [Use].
type Resource interface {
	comparable
	io.Closer
	use() *Use
}

// Use counts the users of a resource.
type Use struct {
	table *sync.Mutex // guards users; nil for a resource in no table
	users int
	last  func() error
}

func (u *Use) use() *Use { return u }

// Release ends one use of the resource.
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
		_ = u.last() // writers sync what they write, so a failed close loses nothing
	}
}

// MaxOpen bounds the resources that a table keeps open.
const MaxOpen = 64

// Get returns the resource of a key and opens it if necessary. The caller must Release it.
func (t *Table[K, T]) Get(key K, open func() (T, error)) (T, error) {
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
		if len(t.all) < MaxOpen {
			break
		}
		t.drop(other) // any will do: there are seldom that many
	}
	if t.all == nil {
		t.all = map[K]T{}
	}
	t.all[key] = x
	*x.use() = Use{&t.mu, 2, x.Close}
	return x, nil
}

// drop removes the resource of a key. The caller holds mu.
func (t *Table[K, T]) drop(key K) {
	x := t.all[key]
	delete(t.all, key)
	x.use().drop()
}

// Drop removes a resource, unless its key has another one by now.
func (t *Table[K, T]) Drop(key K, x T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, ok := t.all[key]; ok && now == x {
		t.drop(key)
	}
}

// Only removes the resources that keep rejects.
func (t *Table[K, T]) Only(keep func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.all {
		if !keep(key) {
			t.drop(key)
		}
	}
}

// Clear removes all resources.
func (t *Table[K, T]) Clear() { t.Only(func(K) bool { return false }) }
