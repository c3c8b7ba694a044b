package loader

import (
	"container/list"
	"context"
)

// NewPool returns a pool of at most max bytes; 0 keeps nothing.
func NewPool(max int64) *Pool {
	return &Pool{max: max, items: map[poolKey]*poolItem{}, order: list.New()}
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
	p.mu.Lock()
	it := p.items[k]
	if it != nil && it.message != nil && it.epoch != epoch {
		p.mu.Unlock()
		unchanged := fresh(it.message)
		p.mu.Lock()
		if unchanged {
			it.epoch = max(it.epoch, epoch)
		} else if p.items[k] == it {
			p.drop(it)
		}
		it = p.items[k]
	}
	if it == nil {
		it = &poolItem{key: k, epoch: epoch}
		p.items[k] = it
		p.mu.Unlock()
		return p.read(it, load), nil
	}
	if m := it.message; m != nil {
		p.order.MoveToFront(it.place)
		p.mu.Unlock()
		return m, nil
	}
	if it.done == nil {
		it.done = make(chan struct{})
	}
	done := it.done
	p.mu.Unlock()
	select {
	case <-done:
		return it.message, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read loads the message of a new item.
func (p *Pool) read(it *poolItem, load func() *Message) *Message {
	m := load()
	p.mu.Lock()
	defer p.mu.Unlock()
	it.message = m
	if it.done != nil {
		close(it.done)
	}
	if p.items[it.key] == it { // not dropped meanwhile
		p.keep(it)
	}
	return m
}

// keep puts a new item in order, and evicts others for it.
func (p *Pool) keep(it *poolItem) {
	if it.message.Unavailable != nil || it.message.cost() > p.max {
		delete(p.items, it.key)
		return
	}
	it.place = p.order.PushFront(it)
	for p.size += it.message.cost(); p.size > p.max; {
		p.drop(p.order.Back().Value.(*poolItem))
	}
}

// current sets messages[i] for each key whose message the pool holds and need not check.
func (p *Pool) current(messages []*Message, key func(i int) poolKey, epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range messages {
		if messages[i] != nil || len(p.items) == 0 {
			continue
		}
		if it := p.items[key(i)]; it != nil && it.message != nil && it.epoch == epoch {
			p.order.MoveToFront(it.place)
			messages[i] = it.message
		}
	}
}

func (p *Pool) drop(it *poolItem) {
	delete(p.items, it.key)
	if it.place != nil {
		p.order.Remove(it.place)
		p.size -= it.message.cost()
	}
}

// forget drops a loader's messages.
func (p *Pool) forget(owner *Loader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, it := range p.items {
		if k.owner == owner {
			p.drop(it)
		}
	}
}

// Size returns the bytes in the pool.
func (p *Pool) Size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}
