package loader

import (
	"container/list"
	"context"
	"sync"

	"github.com/google/uuid"
)

// Pool caches loaded messages up to a number of bytes and evicts the least recently used first. Concurrent requests for
// one message share one read. Reads of different messages never wait for each other. One pool can serve many contexts.
type Pool struct {
	mu    sync.Mutex
	max   int64
	size  int64
	items map[poolKey]*list.Element
	order *list.List // of *poolItem, the most recently used first
	under map[poolKey]*flight
}

// poolKey identifies one version of a message.
type poolKey struct {
	owner    *Loader
	line     uuid.UUID
	position int64
	sum      uint64
	at       int64
}

type poolItem struct {
	key     poolKey
	message *Message
	epoch   uint64 // of the last check of its file
}

// flight is a read in progress.
type flight struct {
	done    chan struct{}
	message *Message
}

// NewPool returns a pool of at most max bytes; 0 keeps nothing.
func NewPool(max int64) *Pool {
	return &Pool{max: max, items: map[poolKey]*list.Element{}, order: list.New(), under: map[poolKey]*flight{}}
}

// get returns the message from the pool, from a read in progress, or from load. fresh reports whether a message that
// was pooled before the last refresh still matches its file.
func (p *Pool) get(
	ctx context.Context,
	k poolKey,
	epoch uint64,
	fresh func(*Message) bool,
	load func() *Message,
) (*Message, error) {
	m, current := p.peek(k, epoch)
	if current {
		return m, nil
	}
	if m != nil && fresh(m) {
		p.add(k, m, epoch)
		return m, nil
	}
	p.mu.Lock()
	if it := p.find(k); it != nil && it.epoch == epoch { // read meanwhile
		p.mu.Unlock()
		return it.message, nil
	}
	if f, ok := p.under[k]; ok {
		p.mu.Unlock()
		select {
		case <-f.done:
			return f.message, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f := &flight{done: make(chan struct{})}
	p.under[k] = f
	p.mu.Unlock()

	f.message = load()
	if f.message.Unavailable == nil {
		p.add(k, f.message, epoch)
	}
	p.mu.Lock()
	delete(p.under, k)
	p.mu.Unlock()
	close(f.done)
	return f.message, nil
}

// peek returns the message if the pool has it. current reports that it needs no check.
func (p *Pool) peek(k poolKey, epoch uint64) (m *Message, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if it := p.find(k); it != nil {
		return it.message, it.epoch == epoch
	}
	return nil, false
}

// find returns the item of a key, nil without one. The caller holds mu.
func (p *Pool) find(k poolKey) *poolItem {
	el, ok := p.items[k]
	if !ok {
		return nil
	}
	p.order.MoveToFront(el)
	return el.Value.(*poolItem)
}

// add puts a loaded message into the pool.
func (p *Pool) add(k poolKey, m *Message, epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if el, ok := p.items[k]; ok {
		p.drop(el)
	}
	if m.cost() > p.max {
		return
	}
	p.items[k] = p.order.PushFront(&poolItem{k, m, epoch})
	for p.size += m.cost(); p.size > p.max; {
		p.drop(p.order.Back())
	}
}

func (p *Pool) drop(el *list.Element) {
	it := p.order.Remove(el).(*poolItem)
	delete(p.items, it.key)
	p.size -= it.message.cost()
}

// forget drops a loader's messages.
func (p *Pool) forget(owner *Loader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, el := range p.items {
		if k.owner == owner {
			p.drop(el)
		}
	}
}

// Size returns the bytes in the pool.
func (p *Pool) Size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}
