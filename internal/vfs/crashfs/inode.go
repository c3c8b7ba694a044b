package crashfs

import (
	"slices"
	"time"
)

// inode is a file or folder: the volatile state, the durable state, and the changes between.
type inode struct {
	ino   uint64
	dir   bool
	links int
	up    *inode // the folder of its last link, for paths in messages
	name  string
	named bool // it has had a durable name

	mtime  time.Time
	mtimes []time.Time // the durable one, then those since

	// Files.
	now  content
	base content
	log  []change
	lock lockState

	hollow extent // blocks without data for the file system: their first write failed

	failed failures

	// Folders.
	entries map[string]*inode
	kept    map[string]*inode // durable entries
}

// extent is the part of a file from one offset to another.
type extent struct{ from, to int64 }

type changeState uint8

const (
	pending changeState = iota
	synced              // durable; still listed because a lost change is before it
	lost                // marked clean by a failed sync
)

// change is a write (data not nil) or a truncation to size.
type change struct {
	op    int
	state changeState
	off   int64
	data  []byte
	size  int64

	hollow bool // it is to a hollow block, so that no sync makes it durable
}

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
