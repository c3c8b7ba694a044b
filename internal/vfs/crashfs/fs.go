package crashfs

import (
	"hash/fnv"
	"io/fs"
	"iter"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

var _ vfs.FS = (*FS)(nil)

// New returns an empty instance.
func New() *FS {
	d := &disk{dev: new(device), last: map[slot]*nameOp{}, off: make(chan struct{})}
	d.root = d.newInode(true)
	d.root.links, d.root.named = 1, true
	return &FS{d: d, root: d.root}
}

// SetClock sets the source of modification times. Without it they begin at a fixed time and grow by a little more than
// a millisecond with each change.
func (f *FS) SetClock(now func() time.Time) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.clock = now
}

// Ops returns the numbered operations so far.
func (f *FS) Ops() []Op {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return slices.Clone(f.d.log)
}

// CutAt cuts the power at the k-th operation, counted from New or Crash. That operation takes effect as far as a crash
// allows, and returns [ErrPowerCut]. A k that has passed cuts at once; 0 cancels the cut.
func (f *FS) CutAt(k int) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.cutAt = k
	if k > 0 && k <= len(f.d.log) {
		f.d.powerOff()
	}
}

// Cut cuts the power now.
func (f *FS) Cut() {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.powerOff()
}

// PowerCut reports whether the power has failed.
func (f *FS) PowerCut() bool {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.dead
}

// Fail sets a hook that runs before every call takes effect. If it returns an error, the call fails with that error and
// without effect, except for [ShortWrite] and failed syncs. The hook may block, call into the FS (which runs the hook
// again), or take a Crash, which sees the state before the operation. nil removes the hook.
func (f *FS) Fail(hook func(Op) error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.hook = hook
}

// FailAt makes the k-th operation fail with err. It replaces the hook.
func (f *FS) FailAt(k int, err error) {
	f.Fail(func(o Op) error {
		if o.Index == k {
			return err
		}
		return nil
	})
}

// find is walk for an FS that may be closed.
func (f *FS) find(path string, mayLack bool) (place, error) {
	if f.closed {
		return place{}, fs.ErrClosed
	}
	return f.walk(path, mayLack)
}

const openFlags = os.O_RDONLY | os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_EXCL | os.O_TRUNC

// OpenFile is vfs.FS.OpenFile. It supports the flags of POSIX except O_SYNC.
func (f *FS) OpenFile(name string, flag int) (vfs.File, error) {
	var h *file
	err := f.d.run(func() Op {
		kind := KindOpen
		if p, err := f.find(name, false); err == nil {
			if p.node == nil && flag&os.O_CREATE != 0 {
				kind = KindCreate
			} else if p.node != nil && !p.node.dir && flag&os.O_TRUNC != 0 {
				kind = KindTruncate
			}
		}
		return Op{Kind: kind, Path: f.full(name)}
	}, func(op Op, fault error) (err error) {
		if fault != nil {
			return fault
		}
		h, err = f.open(op, name, flag)
		return err
	})
	if err != nil {
		return nil, pathError("openat", name, err)
	}
	return h, nil
}

func (f *FS) open(op Op, name string, flag int) (*file, error) {
	if flag&^openFlags != 0 {
		return nil, syscall.EINVAL
	}
	p, err := f.find(name, false)
	if err != nil {
		return nil, err
	}
	create, excl := flag&os.O_CREATE != 0, flag&os.O_EXCL != 0
	switch n := p.node; {
	case n == nil && !create:
		return nil, syscall.ENOENT
	case n == nil && p.dir.links == 0:
		return nil, syscall.ENOENT
	case n == nil:
		p.node = f.d.newInode(false)
		f.d.change(&nameOp{op: op.Index, effects: []effect{{slot{p.dir, p.name}, p.node}}})
	case create && excl:
		return nil, syscall.EEXIST
	case n.dir && (create || flag&os.O_TRUNC != 0 || flag&(os.O_WRONLY|os.O_RDWR) != 0):
		return nil, syscall.EISDIR
	case !n.dir && flag&os.O_TRUNC != 0:
		n.change(change{op: op.Index}, f.d.now())
	}
	return &file{d: f.d, node: p.node, name: name, flag: flag, failed: p.node.failed.cursor()}, nil
}

func (f *FS) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.d.run(func() Op { return Op{Kind: KindStat, Path: f.full(name)} }, func(_ Op, fault error) error {
		p, err := f.find(name, false)
		switch {
		case fault != nil:
			return fault
		case err != nil:
			return err
		case p.node == nil:
			return syscall.ENOENT
		}
		info = f.d.info(p.node, name)
		return nil
	})
	return info, pathError("statat", name, err)
}

// ReadDir yields the entries at the time of the call, in an order that is always the same and never sorted.
func (f *FS) ReadDir(name string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		var list []fs.DirEntry
		err := f.d.run(func() Op { return Op{Kind: KindReadDir, Path: f.full(name)} }, func(_ Op, fault error) error {
			n, err := f.folder(name)
			switch {
			case fault != nil:
				return fault
			case err != nil:
				return err
			case n.links == 0:
				return syscall.ENOENT // Linux does not list a removed folder
			}
			for base, e := range n.entries {
				list = append(list, dirEntry{f.d, n, base, e.dir})
			}
			return nil
		})
		if err != nil {
			yield(nil, pathError("readdir", name, err))
			return
		}
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return shuffled(a.Name(), b.Name()) })
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func shuffled(a, b string) int {
	hash := func(s string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(s))
		return h.Sum64()
	}
	if x, y := hash(a), hash(b); x < y {
		return -1
	} else if x > y {
		return 1
	}
	return 0
}

// folder finds a folder.
func (f *FS) folder(name string) (*inode, error) {
	p, err := f.find(name, false)
	switch {
	case err != nil:
		return nil, err
	case p.node == nil:
		return nil, syscall.ENOENT
	case !p.node.dir:
		return nil, syscall.ENOTDIR
	}
	return p.node, nil
}

// Sub opens a folder. The result follows the folder through renames.
func (f *FS) Sub(name string) (vfs.FS, error) {
	var sub *FS
	err := f.d.run(func() Op { return Op{Kind: KindOpen, Path: f.full(name)} }, func(_ Op, fault error) error {
		n, err := f.folder(name)
		if fault != nil {
			err = fault
		}
		sub = &FS{d: f.d, root: n, failed: f.d.failed.cursor()}
		return err
	})
	if err != nil {
		return nil, pathError("openat", name, err)
	}
	return sub, nil
}

// Close closes this FS alone. Open files and results of Sub keep working.
func (f *FS) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.closed = true
	return nil
}
