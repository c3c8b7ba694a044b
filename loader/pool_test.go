package loader

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestPoolDropsWhileReading: a message whose loader was closed during the read does not stay in the pool. Callers that
// wait for the read have it all the same.
func TestPoolDropsWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1 << 20)
		owner, m := &Loader{}, &Message{}
		key := poolKey{owner: owner}
		waiter := make(chan *Message, 1)
		got, err := p.get(t.Context(), key, 0, nil, func() *Message {
			go func() {
				w, _ := p.get(t.Context(), key, 0, nil, func() *Message { return nil })
				waiter <- w
			}()
			synctest.Wait() // the other caller waits
			p.forget(owner)
			return m
		})
		if w := <-waiter; err != nil || got != m || w != m || p.Size() != 0 || len(p.items) != 0 {
			t.Errorf("%v and %v, %v; the pool holds %d bytes in %d items", got, w, err, p.Size(), len(p.items))
		}
	})
}

// TestPoolAgainstModel: the pool holds the messages that were used last, as many as fit, and no others.
func TestPoolAgainstModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const cost = 512
		p := NewPool(int64(rapid.IntRange(0, 4).Draw(r, "fit")) * cost)
		var used []int64 // positions, the most recently used first
		for range rapid.IntRange(1, 30).Draw(r, "calls") {
			position := rapid.Int64Range(0, 5).Draw(r, "position")
			held, read := slices.Contains(used, position), false
			m, err := p.get(context.Background(), poolKey{position: position}, 0, nil, func() *Message {
				read = true
				return &Message{Position: position}
			})
			if err != nil || m.Position != position || read == held {
				r.Fatalf("position %d: read %v although held %v, %v", position, read, held, err)
			}
			used = slices.DeleteFunc(used, func(other int64) bool { return other == position })
			used = append([]int64{position}, used...)
			used = used[:min(int64(len(used)), p.max/cost)]
			if p.Size() != int64(len(used))*cost || len(p.items) != len(used) {
				r.Fatalf("%d bytes in %d items for %v", p.Size(), len(p.items), used)
			}
		}
	})
}

// TestTogether: each number is read once, by however many readers, and an error ends the reading.
func TestTogether(t *testing.T) {
	failed := errors.New("failed")
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(r, "n")
		bad := rapid.IntRange(0, 600).Draw(r, "bad")
		var mu sync.Mutex
		seen := map[int]int{}
		err := together(n, rapid.Bool().Draw(r, "help"), func(from, to int) error {
			mu.Lock()
			defer mu.Unlock()
			for i := from; i < to; i++ {
				seen[i]++
				if i == bad {
					return failed
				}
			}
			return nil
		})
		if (err != nil) != (bad < n) || err == nil && len(seen) != n {
			r.Fatalf("%d of %d read, %v", len(seen), n, err)
		}
		for i, times := range seen {
			if times != 1 {
				r.Fatalf("%d was read %d times", i, times)
			}
		}
	})
}
