package crashfs

import "slices"

// change performs effects on the volatile names and lists them.
func (d *disk) change(n *nameOp) *nameOp {
	t := d.now()
	for _, e := range n.effects {
		if prev := d.last[e.slot]; prev != nil {
			n.after = append(n.after, prev)
		}
		if old := e.dir.entries[e.name]; old != nil {
			old.links--
			delete(e.dir.entries, e.name)
		}
		if e.node != nil {
			e.node.links++
			e.node.up, e.node.name = e.dir, e.name
			e.dir.entries[e.name] = e.node
		}
		e.dir.touch(t)
	}
	for _, e := range n.effects {
		d.last[e.slot] = n
	}
	d.names = append(d.names, n)
	return n
}

// within returns the unsynced changes of a folder's entries, older than op.
func (d *disk) within(in func(*inode) bool, op int) []*nameOp {
	var list []*nameOp
	for _, n := range d.names {
		if n.op < op && slices.ContainsFunc(n.effects, func(e effect) bool { return in(e.dir) }) {
			list = append(list, n)
		}
	}
	return list
}

// leading returns the unsynced changes that lead to a folder.
func (d *disk) leading(dir *inode) []*nameOp {
	var list []*nameOp
	for ; dir != d.root && dir.up != nil; dir = dir.up {
		if n := d.last[slot{dir.up, dir.name}]; n != nil {
			list = append(list, n)
		}
	}
	return list
}

// settleNames makes changes durable, with their requirements.
func (d *disk) settleNames(list []*nameOp) {
	if len(list) == 0 {
		return
	}
	take := map[*nameOp]bool{}
	for _, n := range list {
		include(take, n)
	}
	d.keep(take)
	for n := range take {
		for _, e := range n.effects {
			if d.last[e.slot] == n {
				delete(d.last, e.slot)
			}
			if e.node != nil && e.dir.kept[e.name] == e.node {
				e.node.named = true
			}
		}
		n.after, n.guard = nil, nil
	}
	d.names = slices.DeleteFunc(d.names, func(n *nameOp) bool { return take[n] })
}

// include adds n and all its requirements to a choice of changes.
func include(take map[*nameOp]bool, n *nameOp) {
	for todo := []*nameOp{n}; len(todo) > 0; {
		n, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if !take[n] {
			take[n] = true
			todo = append(todo, n.needs()...)
		}
	}
}

// keep applies a choice of changes to the durable names, in their original order.
func (d *disk) keep(take map[*nameOp]bool) {
	for _, n := range d.names {
		if !take[n] {
			continue
		}
		for _, e := range n.effects {
			if e.node != nil {
				e.dir.kept[e.name] = e.node
			} else {
				delete(e.dir.kept, e.name)
			}
		}
	}
}
