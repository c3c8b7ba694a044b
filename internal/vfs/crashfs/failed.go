package crashfs

import "syscall"

// FailWriteback makes the system's write-back of a file fail: its data is lost, and the next sync reports the failure.
func (f *FS) FailWriteback(name string) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	p, err := f.find(name, false)
	if err == nil && (p.node == nil || p.node.dir) {
		err = syscall.ENOENT
	}
	if err != nil {
		return pathError("write back", name, err)
	}
	f.d.fail(p.node, len(f.d.log)+1)
	return nil
}

// Drop makes the system drop a file's clean pages. Reads then return the content on disk, without unwritten data.
func (f *FS) Drop(name string) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	p, err := f.find(name, false)
	if err == nil && (p.node == nil || p.node.dir) {
		err = syscall.ENOENT
	}
	if err != nil {
		return pathError("drop", name, err)
	}
	n := p.node
	n.now = n.base.clone()
	for i := range n.log {
		if n.log[i].state != lost {
			n.log[i].apply(&n.now)
		}
	}
	return nil
}
