package crashfs

import (
	"slices"
	"syscall"
	"time"
)

const (
	pending changeState = iota
	synced              // durable; still listed because a lost change is before it
	lost                // marked clean by a failed sync
)

func (c *change) apply(to *content) {
	if c.data != nil {
		to.writeAt(c.data, c.off)
	} else {
		to.truncate(c.size)
	}
}

func (n *inode) touch(t time.Time) {
	n.mtime = t
	n.mtimes = append(n.mtimes, t)
}

func (n *inode) change(c change, t time.Time) {
	c.apply(&n.now)
	n.touch(t)
	if c.data == nil {
		n.hollow.to = min(n.hollow.to, c.size)
		n.log = append(n.log, c)
		return
	}
	at, end := c.off, c.off+int64(len(c.data))
	for _, to := range []int64{n.hollow.from, n.hollow.to, end} {
		if to = min(to, end); to > at {
			part := c
			part.off, part.data = at, c.data[at-c.off:to-c.off]
			part.hollow = at >= n.hollow.from && at < n.hollow.to
			n.log = append(n.log, part)
			at = to
		}
	}
}

// dig notes the blocks that failing writes were to add.
func (n *inode) dig() {
	end := n.base.size
	for i := range n.log {
		if c := &n.log[i]; c.state == synced {
			end = max(end, c.off+int64(len(c.data)))
		}
	}
	end = (end + pageSize - 1) / pageSize * pageSize
	if n.hollow.to > n.hollow.from {
		end = min(end, n.hollow.from)
	}
	if n.now.size > end {
		n.hollow = extent{end, n.now.size}
	}
}

// settle makes the changes that operation op covers durable: those from before it began.
func (n *inode) settle(op int) {
	n.mark(op, synced)
	done := 0
	for done < len(n.log) && n.log[done].state == synced {
		n.log[done].apply(&n.base)
		done++
	}
	n.log = slices.Delete(n.log, 0, done)
}

// mark reports whether it marked any change.
func (n *inode) mark(op int, to changeState) (any bool) {
	for i := range n.log {
		if c := &n.log[i]; c.state == pending && c.op < op {
			if c.state, any = to, true; c.hollow {
				c.state = lost
			}
		}
	}
	return any
}

func (n *inode) settleTime() { n.mtimes = []time.Time{n.mtime} }

// dirty reports whether a crash may change the content.
func (n *inode) dirty() bool { return len(n.log) > 0 }

func (e *failures) add() { e.n, e.told = e.n+1, false }

// cursor returns the cursor of a new descriptor. It reports the last failure only if no descriptor did.
func (e *failures) cursor() uint64 {
	if e.n > 0 && !e.told {
		return e.n - 1
	}
	return e.n
}

// since advances a cursor and returns an error if there was a failure after it.
func (e *failures) since(cursor *uint64) error {
	if *cursor == e.n {
		return nil
	}
	*cursor, e.told = e.n, true
	return syscall.EIO
}
