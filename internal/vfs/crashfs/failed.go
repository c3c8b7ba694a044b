package crashfs

import "syscall"

// failures records the write failures of a file or a disk as Linux does (errseq_t). Each descriptor has a cursor and
// reports the failures since that cursor, once.
type failures struct {
	n    uint64
	told bool // a descriptor has reported the last failure
}

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

// fail marks the data written to a file before operation op clean.
func (d *disk) fail(n *inode, op int) {
	if n.mark(op, lost) {
		n.dig()
		n.failed.add()
		d.failed.add()
	}
}

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
