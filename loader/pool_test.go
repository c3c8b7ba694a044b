package loader

import (
	"context"
	"slices"
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
