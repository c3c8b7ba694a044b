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

	failed failures

	// Folders.
	entries map[string]*inode
	kept    map[string]*inode // durable entries
}

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
	n.log = append(n.log, c)
	n.touch(t)
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
			c.state, any = to, true
		}
	}
	return any
}

func (n *inode) settleTime() { n.mtimes = []time.Time{n.mtime} }

// dirty reports whether a crash may change the content.
func (n *inode) dirty() bool { return len(n.log) > 0 }
