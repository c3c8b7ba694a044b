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
	order *list.List // of *pooled, the most recently used first
	under map[poolKey]*flight
}

type poolKey struct {
	owner    *Loader
	line     uuid.UUID
	position int64
}

type pooled struct {
	key     poolKey
	message *Message
	sum     uint64
	at      int64
	epoch   uint64
}

// flight is a read in progress.
type flight struct {
	sum     uint64
	at      int64
	done    chan struct{}
	message *Message
	err     error
}

// NewPool returns a pool of at most max bytes; 0 keeps nothing.
func NewPool(max int64) *Pool {
	return &Pool{max: max, items: map[poolKey]*list.Element{}, order: list.New(), under: map[poolKey]*flight{}}
}

// get returns this version of the message from the pool, from a read in progress, or from load. fresh reports whether a
// message pooled before the last refresh still matches its file.
func (p *Pool) get(
	ctx context.Context,
	k poolKey,
	sum uint64,
	at int64,
	epoch uint64,
	fresh func(*Message) bool,
	load func() (*Message, error),
) (*Message, error) {
	p.mu.Lock()
	if el, ok := p.items[k]; ok {
		if it := el.Value.(*pooled); it.sum == sum && it.at == at {
			p.order.MoveToFront(el)
			if it.epoch == epoch {
				p.mu.Unlock()
				return it.message, nil
			}
			m := it.message
			p.mu.Unlock()
			if fresh(m) {
				p.mu.Lock()
				it.epoch = epoch
				p.mu.Unlock()
				return m, nil
			}
			p.mu.Lock()
		}
	}
	if f, ok := p.under[k]; ok && f.sum == sum && f.at == at {
		p.mu.Unlock()
		select {
		case <-f.done:
			return f.message, f.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f := &flight{sum: sum, at: at, done: make(chan struct{})}
	p.under[k] = f
	p.mu.Unlock()

	f.message, f.err = load()

	p.mu.Lock()
	if p.under[k] == f {
		delete(p.under, k)
	}
	if f.err == nil && f.message.Unavailable == nil {
		p.put(&pooled{k, f.message, sum, at, epoch})
	}
	p.mu.Unlock()
	close(f.done)
	return f.message, f.err
}

// peek returns this version of the message if the pool has it and it needs no check.
func (p *Pool) peek(k poolKey, sum uint64, at int64, epoch uint64) *Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	el, ok := p.items[k]
	if !ok {
		return nil
	}
	it := el.Value.(*pooled)
	if it.sum != sum || it.at != at || it.epoch != epoch {
		return nil
	}
	p.order.MoveToFront(el)
	return it.message
}

// add puts a loaded message into the pool.
func (p *Pool) add(k poolKey, m *Message, sum uint64, at int64, epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(&pooled{k, m, sum, at, epoch})
}

func (p *Pool) put(it *pooled) {
	if el, ok := p.items[it.key]; ok {
		p.drop(el)
	}
	if it.message.cost() > p.max {
		return
	}
	p.items[it.key] = p.order.PushFront(it)
	for p.size += it.message.cost(); p.size > p.max; {
		p.drop(p.order.Back())
	}
}

func (p *Pool) drop(el *list.Element) {
	it := p.order.Remove(el).(*pooled)
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
