package crashfs

import "syscall"

// failures is what was not written, of a file or a disk, as Linux keeps account of it (errseq_t): each descriptor has a cursor, and is told of what
// failed since that was set, once.
type failures struct {
	n    uint64
	told bool // somebody was
}

func (e *failures) add() { e.n, e.told = e.n+1, false }

// cursor is that of a new descriptor. It is told of the last failure only if nobody was.
func (e *failures) cursor() uint64 {
	if e.n > 0 && !e.told {
		return e.n - 1
	}
	return e.n
}

// since returns an error if there was a failure behind a cursor, which it sets.
func (e *failures) since(cursor *uint64) error {
	if *cursor == e.n {
		return nil
	}
	*cursor, e.told = e.n, true
	return syscall.EIO
}

// fail marks clean what was written to a file before operation op.
func (d *disk) fail(n *inode, op int) {
	if n.mark(op, lost) {
		n.failed.add()
		d.failed.add()
	}
}

// FailWriteback lets the system fail to write a file back by itself: what was written is lost as by a failed sync, and of that the next one is told.
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

// Drop lets the system forget what it need not write of a file: it reads what is on the disk then, without what could not be written.
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
