package pgfs

import (
	"slices"
	"sort"
	"sync/atomic"

	"github.com/google/uuid"
)

const (
	maxExtent = 64 << 10  // of data, in bytes: reading a part of an extent reads all of it
	maxObject = 256 << 10 // likewise, if content may be an object
	maxRun    = 1 << 20   // of one repeated byte
	minRun    = 512
)

// extent is a part of a file that was written at once.
type extent struct {
	n    int64 // 0: it was not sent yet
	off  int64
	size int64
	live int64 // how many of its bytes show

	data   []byte    // nil if only the database has it
	run    bool      // data is one byte, repeated
	stored bool      // the database has it
	object uuid.UUID // where its data is, unless the database has that
	kept   atomic.Pointer[[]byte]
}

// piece is a part of an extent that shows.
type piece struct {
	off, end int64
	x        *extent
}

// content is what a file holds: pieces that cover it without gaps, in order.
type content struct {
	pieces  []piece
	dirty   []*extent // not sent yet, oldest first
	unsaved int64     // bytes of data in them
	dead    []int64   // stored extents that do not show any more
	last    int64     // the number of the newest extent
	most    int       // of data in an extent, in bytes; 0 means maxExtent
}

func (c *content) size() int64 {
	if len(c.pieces) == 0 {
		return 0
	}
	return c.pieces[len(c.pieces)-1].end
}

// at returns the index of the first piece that ends after an offset.
func (c *content) at(off int64) int {
	return sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].end > off })
}

// place makes an extent show in [off, end). It leaves no gap before off.
func (c *content) place(off, end int64, x *extent) {
	i := c.at(off)
	var with [3]piece
	parts := with[:0]
	if i < len(c.pieces) && c.pieces[i].off < off {
		parts = append(parts, piece{c.pieces[i].off, off, c.pieces[i].x})
	}
	parts = append(parts, piece{off, end, x})
	x.live += end - off
	j := i
	for ; j < len(c.pieces) && c.pieces[j].off < end; j++ {
		p := c.pieces[j]
		c.hide(p.x, min(p.end, end)-max(p.off, off))
		if p.end > end {
			parts = append(parts, piece{end, p.end, p.x})
		}
	}
	c.pieces = slices.Replace(c.pieces, i, j, parts...)
}

func (c *content) hide(x *extent, bytes int64) {
	if x.live -= bytes; x.live == 0 && x.stored && x.n > 0 {
		c.dead = append(c.dead, x.n)
	}
}

// add places a new extent.
func (c *content) add(x *extent) {
	c.dirty = append(c.dirty, x)
	c.unsaved += int64(len(x.data))
	c.place(x.off, x.off+x.size, x)
}

// fill places one byte, repeated.
func (c *content) fill(b byte, off, end int64) {
	for off < end {
		n := min(end-off, maxRun)
		c.add(&extent{off: off, size: n, data: []byte{b}, run: true})
		off += n
	}
}

// write places a copy of b. A gap before it has zeros.
func (c *content) write(b []byte, off int64) {
	c.fill(0, c.size(), off)
	tail := len(b)
	for tail > 0 && b[tail-1] == b[len(b)-1] {
		tail--
	}
	if len(b)-tail < minRun {
		tail = len(b)
	}
	end := off + int64(len(b))
	for rest := b[:tail]; len(rest) > 0; {
		n := c.extend(rest, off)
		if n == 0 {
			n = min(len(rest), max(c.most, maxExtent))
			c.add(&extent{off: off, size: int64(n), data: slices.Clone(rest[:n])})
		}
		rest, off = rest[n:], off+int64(n)
	}
	if off < end {
		c.fill(b[len(b)-1], off, end)
	}
}

// extend appends to the last extent if it was not sent yet, and returns how many bytes it took.
func (c *content) extend(b []byte, off int64) int {
	if len(c.pieces) == 0 {
		return 0
	}
	p := &c.pieces[len(c.pieces)-1]
	x := p.x
	if x.n != 0 || x.run || p.end != off || x.off+x.size != off {
		return 0
	}
	n := min(len(b), max(c.most, maxExtent)-len(x.data))
	x.data = append(x.data, b[:n]...)
	x.size, x.live, p.end = x.size+int64(n), x.live+int64(n), p.end+int64(n)
	c.unsaved += int64(n)
	return n
}

// truncate sets the size. What is new has zeros.
func (c *content) truncate(size int64) {
	c.fill(0, c.size(), size)
	i := c.at(size)
	for j := i; j < len(c.pieces); j++ {
		p := &c.pieces[j]
		c.hide(p.x, p.end-max(p.off, size))
	}
	if i < len(c.pieces) && c.pieces[i].off < size {
		c.pieces[i].end = size
		i++
	}
	clear(c.pieces[i:])
	c.pieces = c.pieces[:i]
}

// take numbers the extents that were not sent yet, and returns those that show, with what they make superfluous.
func (c *content) take() (sent []*extent, dead []int64) {
	for _, x := range c.dirty {
		if x.live > 0 {
			c.last++
			x.n = c.last
			sent = append(sent, x)
		}
	}
	dead = c.dead
	c.dirty, c.unsaved, c.dead = nil, 0, nil
	return sent, dead
}

// settle notes that the database has what take returned. It keeps the data of a small file.
func (c *content) settle(sent []*extent) {
	for _, x := range sent {
		if x.stored = true; x.live == 0 {
			c.dead = append(c.dead, x.n)
		}
		if !x.run && c.size() > maxSmall {
			x.data = nil
		}
	}
}

// untake takes back what could not be sent.
func (c *content) untake(sent []*extent, dead []int64) {
	for _, x := range sent {
		x.n = 0
		c.unsaved += int64(len(x.data))
	}
	c.dirty, c.dead = append(sent, c.dirty...), append(dead, c.dead...)
}

// maxSmall is the size, in bytes, up to which an open file stays in memory.
const maxSmall = 16 << 10
