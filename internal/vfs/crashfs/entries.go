package crashfs

import (
	"errors"
	"math"
	"os"
	"syscall"
)

func (f *FS) Mkdir(name string) error {
	err := f.d.run(func() Op { return Op{Kind: KindMkdir, Path: f.full(name)} }, func(op Op, fault error) error {
		if fault != nil {
			return fault
		}
		p, err := f.find(name, true)
		switch {
		case p.node != nil && (err == nil || errors.Is(err, syscall.ENOTDIR)):
			return syscall.EEXIST
		case err != nil:
			return err
		case p.dir.links == 0:
			return syscall.ENOENT
		}
		f.d.change(&nameOp{op: op.Index, effects: []effect{{slot{p.dir, p.name}, f.d.newInode(true)}}})
		return nil
	})
	return pathError("mkdirat", name, err)
}

// Remove removes a file or an empty folder.
func (f *FS) Remove(name string) error {
	err := f.d.run(func() Op { return Op{Kind: KindRemove, Path: f.full(name)} }, func(op Op, fault error) error {
		if fault != nil {
			return fault
		}
		p, err := f.find(name, false)
		switch {
		case err != nil:
			return err
		case p.node == nil:
			return syscall.ENOENT
		case p.name == ".":
			return syscall.EINVAL
		case len(p.node.entries) > 0:
			return syscall.ENOTEMPTY
		}
		n := &nameOp{op: op.Index, effects: []effect{{slot{p.dir, p.name}, nil}}}
		if p.node.dir {
			// Entries moved out of the folder must not be lost with it.
			n.after = f.d.within(func(dir *inode) bool { return dir == p.node }, math.MaxInt)
		}
		f.d.change(n)
		return nil
	})
	return pathError("removeat", name, err)
}

func (f *FS) Rename(from, to string) error { return f.runRename(from, to, false) }

// RenameNew is one operation of [KindRename]: nothing comes between the check and the rename.
func (f *FS) RenameNew(from, to string) error { return f.runRename(from, to, true) }

func (f *FS) runRename(from, to string, isNew bool) error {
	err := f.d.run(func() Op {
		return Op{Kind: KindRename, Path: f.full(from), To: f.full(to)}
	}, func(op Op, fault error) error {
		if fault != nil {
			return fault
		}
		return f.rename(op, from, to, isNew)
	})
	if err != nil {
		return &os.LinkError{Op: "renameat", Old: from, New: to, Err: err}
	}
	return nil
}

func (f *FS) rename(op Op, from, to string, isNew bool) error {
	old, err := f.find(from, false)
	if err != nil {
		return err
	}
	dst, err := f.find(to, true)
	if err != nil {
		return err
	}
	isDot := old.name == "." || dst.name == "."
	switch n := old.node; {
	case n == nil:
		return syscall.ENOENT
	case isNew && dst.node != nil:
		return syscall.EEXIST
	case dst.slash && !n.dir:
		return syscall.ENOTDIR
	case dst.node != nil && dst.node.dir && (dst.node != n || dst.name == old.name):
		return syscall.EEXIST // os.Root never replaces a folder, not even by itself
	case isDot:
		return syscall.EBUSY
	case dst.dir.links == 0:
		return syscall.ENOENT
	case n.dir && below(dst.dir, n):
		return syscall.EINVAL
	case dst.node == n:
		return nil // one file under two names: POSIX leaves both
	case n.dir && dst.node != nil:
		return syscall.ENOTDIR
	}
	f.d.move(op.Index, slot{old.dir, old.name}, slot{dst.dir, dst.name}, old.node)
	return nil
}

// below reports whether n is top or below it.
func below(n, top *inode) bool {
	for ; n != nil; n = n.up {
		if n == top {
			return true
		}
	}
	return false
}

func (d *disk) move(op int, from, to slot, n *inode) {
	switch {
	case from.dir == to.dir:
		d.change(&nameOp{op: op, effects: []effect{{from, nil}, {to, n}}})
	case n.dir:
		d.change(&nameOp{op: op, effects: []effect{{from, nil}, {to, n}}, after: d.leading(to.dir)})
	default:
		// The destination may be an unsynced folder: the file keeps its old name until the folder is durable.
		leading := d.leading(to.dir)
		link := d.change(&nameOp{op: op, effects: []effect{{to, n}}})
		d.change(&nameOp{op: op, effects: []effect{{from, nil}}, moved: n, guard: append(leading, link)})
	}
}

func (f *FS) SyncDir(name string) error {
	err := f.d.run(func() Op { return Op{Kind: KindSyncDir, Path: f.full(name)} }, func(op Op, fault error) error {
		n, err := f.folder(name)
		if fault != nil {
			err = fault
		}
		if err == nil {
			f.d.syncDir(n, op)
		}
		return err
	})
	return pathError("syncdir", name, err)
}

// SyncAll makes everything below durable, names included, and nothing else. The real syncfs would do more.
func (f *FS) SyncAll() error {
	err := f.d.run(func() Op { return Op{Kind: KindSyncAll, Path: f.full(".")} }, func(op Op, fault error) error {
		err := f.syncAll(op, fault)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			f.fails++
		}
		return err
	})
	return pathError("syncfs", ".", err)
}

func (f *FS) syncAll(op Op, fault error) error {
	if _, err := f.folder("."); err != nil {
		return err
	}
	if fault == nil {
		if err := f.d.failed.since(&f.failed); err != nil {
			return err
		}
	}
	all := tree(f.root, func(n *inode) map[string]*inode { return n.entries })
	if fault == nil && op.Index != f.d.cutAt {
		f.d.settleNames(f.d.within(func(dir *inode) bool { return all[dir] }, op.Index))
	}
	for n := range all {
		f.d.syncFile(n, op, fault)
		if fault == nil && op.Index != f.d.cutAt {
			n.settleTime()
		}
	}
	if fault != nil {
		_ = f.d.failed.since(&f.failed) // this call reports the failure
	}
	return fault
}

// SyncFailures counts the calls of SyncAll that failed.
func (f *FS) SyncFailures() uint64 {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.fails
}

// tree returns a folder and everything below it.
func tree(root *inode, entries func(*inode) map[string]*inode) map[*inode]bool {
	seen := map[*inode]bool{}
	for todo := []*inode{root}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		for _, e := range entries(n) {
			todo = append(todo, e)
		}
	}
	return seen
}
