package crashfs

import (
	"maps"
	"slices"
)

// Clone returns an instance in the same state, unsynced changes and count of operations included. Its power is on, it
// has no hook, no ordered cut, and all its locks are free. Open files stay with the old instance.
func (f *FS) Clone() *FS {
	d := f.clone()
	return &FS{d: d, root: d.root, failed: d.failed.cursor()}
}

// copier maps the parts of one disk to their copies in another.
type copier struct {
	inodes map[*inode]*inode
	names  map[*nameOp]*nameOp
}

func (f *FS) clone() *disk {
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &copier{map[*inode]*inode{}, map[*nameOp]*nameOp{}}
	e := &disk{
		dev: d.dev, root: c.inode(d.root),
		nextIno: d.nextIno, nextTemp: d.nextTemp, clock: d.clock, ticks: d.ticks,
		log: slices.Clone(d.log), off: make(chan struct{}),
		last: map[slot]*nameOp{}, failed: d.failed,
	}
	for _, n := range d.names {
		m := &nameOp{op: n.op, after: c.list(n.after), moved: c.inode(n.moved), guard: c.list(n.guard)}
		for _, old := range n.effects {
			at := slot{c.inode(old.dir), old.name}
			m.effects = append(m.effects, effect{at, c.inode(old.node)})
			e.last[at] = m
		}
		c.names[n] = m
		e.names = append(e.names, m)
	}
	return e
}

// list copies references to older changes, without those that have become durable since.
func (c *copier) list(of []*nameOp) []*nameOp {
	var list []*nameOp
	for _, n := range of {
		if m := c.names[n]; m != nil {
			list = append(list, m)
		}
	}
	return list
}

func (c *copier) inode(n *inode) *inode {
	if n == nil {
		return nil
	}
	if m := c.inodes[n]; m != nil {
		return m
	}
	m := &inode{
		ino: n.ino, dir: n.dir, links: n.links, name: n.name, named: n.named,
		mtime: n.mtime, mtimes: slices.Clone(n.mtimes),
		now: n.now.clone(), base: n.base.clone(), log: slices.Clone(n.log), hollow: n.hollow, failed: n.failed,
	}
	c.inodes[n] = m
	m.up = c.inode(n.up)
	m.entries, m.kept = c.entries(n.entries), c.entries(n.kept)
	return m
}

func (c *copier) entries(of map[string]*inode) map[string]*inode {
	if of == nil {
		return nil
	}
	m := maps.Clone(of)
	for name, n := range m {
		m[name] = c.inode(n)
	}
	return m
}
