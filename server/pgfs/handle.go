package pgfs

// hold counts an open handle of a node. The caller holds v.mu.
func (v *volume) hold(n *node) { n.refs++ }

// release gives a handle of a node back. The last one of a file forgets the content, and removes it if the file has no
// name any more.
func (v *volume) release(n *node) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	n.refs--
	if n.refs > 0 || n.folder {
		return nil
	}
	if n.gone {
		return v.write(false, unsynced+dropNode+forgetNode+result, n.id)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.content, n.loaded = content{}, false
	return nil
}

// flushAll sends what was not synced, of all files. It returns when everything is durable.
func (v *volume) flushAll() error {
	v.mu.Lock()
	open := v.opened(v.root, nil)
	v.mu.Unlock()
	for _, n := range open {
		if err := v.flush(n, false, true); err != nil {
			return err
		}
	}
	return v.sync()
}

// opened appends the files below n that are open. The caller holds v.mu.
func (v *volume) opened(n *node, open []*node) []*node {
	if !n.folder && n.refs > 0 {
		return append(open, n)
	}
	for _, e := range n.entries {
		open = v.opened(e, open)
	}
	return open
}
