package crashfs

import "math/rand/v2"

// torn builds the possible content of a file after a power cut, change by change.
type torn struct {
	r       *rand.Rand
	p       float64
	img     content
	stopped map[int64]bool // sectors that lost a pending write, and so all later ones
	barrier int64          // size of the smallest lost truncation; -1: none
}

func randomContent(n *inode, r *rand.Rand) content {
	t := &torn{r: r, p: bias(r), img: n.base.clone(), stopped: map[int64]bool{}, barrier: -1}
	open := 0
	for i := range n.log {
		if n.log[i].state == pending {
			open++
		}
	}
	// The number of pending changes of size that survive.
	sizes := []int{0, open, open, r.IntN(open + 1)}[r.IntN(4)]
	for i := range n.log {
		switch c := &n.log[i]; c.state {
		case synced:
			c.apply(&t.img)
		case lost:
			t.lost(c)
		default:
			t.pending(c, sizes)
			sizes--
		}
	}
	return t.img
}

// lost applies the data that a failed sync may have written after all, each sector separately.
func (t *torn) lost(c *change) {
	if c.data == nil {
		if t.coin() {
			c.apply(&t.img)
		}
		return
	}
	if end := c.off + int64(len(c.data)); end > t.img.size && t.coin() {
		t.img.truncate(end)
	}
	survives := t.pattern()
	for lo, hi := range sectors(c) {
		if survives(lo) {
			t.put(c, lo, hi)
		}
	}
}

// pending applies a change. The change affects the size if sizes is positive.
func (t *torn) pending(c *change, sizes int) {
	if c.data == nil {
		t.truncation(c.size, sizes > 0)
		return
	}
	if end := c.off + int64(len(c.data)); end > t.img.size {
		switch {
		case sizes > 0:
			t.img.truncate(end)
		case sizes == 0 && t.coin():
			// Only the write-back of its first pages was under way.
			if pages := (end - t.img.size) / pageSize; pages > 0 {
				t.img.truncate((t.img.size/pageSize + 1 + t.r.Int64N(pages)) * pageSize)
			}
		}
	}
	survives := t.pattern()
	for lo, hi := range sectors(c) {
		s := lo / sectorSize
		if t.stopped[s] {
			continue
		}
		if !survives(lo) || t.barrier >= 0 && hi > t.barrier {
			t.stopped[s] = true
			continue
		}
		t.put(c, lo, hi)
	}
}

func (t *torn) truncation(size int64, survives bool) {
	if survives {
		t.img.truncate(size)
	} else if t.barrier < 0 || size < t.barrier {
		t.barrier = size
	}
}

// put writes the part of a change in one sector. Bytes past the end are not part of the file.
func (t *torn) put(c *change, lo, hi int64) {
	if hi = min(hi, t.img.size); lo < hi {
		t.img.writeAt(c.data[lo-c.off:hi-c.off], lo)
	}
}

func (t *torn) coin() bool { return t.r.Float64() < t.p }

// pattern chooses the parts of one write that survive. Callers ask in ascending order.
func (t *torn) pattern() func(off int64) bool {
	switch t.r.IntN(5) {
	case 0:
		return func(int64) bool { return false }
	case 1, 2:
		return func(int64) bool { return true }
	case 3: // by page
		at, ok := int64(-1), false
		return func(off int64) bool {
			if off/pageSize != at {
				at, ok = off/pageSize, t.coin()
			}
			return ok
		}
	}
	return func(int64) bool { return t.coin() } // by sector
}

// sectors yields the ranges of a write, split by sector.
func sectors(c *change) func(yield func(lo, hi int64) bool) {
	return func(yield func(lo, hi int64) bool) {
		end := c.off + int64(len(c.data))
		for lo := c.off; lo < end; {
			hi := min(end, (lo/sectorSize+1)*sectorSize)
			if !yield(lo, hi) {
				return
			}
			lo = hi
		}
	}
}

// bias is the probability that a change survives. Mostly lost and mostly kept find other bugs than a fair coin.
func bias(r *rand.Rand) float64 { return []float64{0.1, 0.5, 0.5, 0.9}[r.IntN(4)] }
