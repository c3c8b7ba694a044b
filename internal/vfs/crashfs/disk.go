package crashfs

import (
	"slices"
	"sync"
	"time"
)

// disk is the state that all handles of one instance share.
type disk struct {
	mu   sync.Mutex
	dev  *device
	root *inode

	nextIno  uint64
	nextTemp uint64
	clock    func() time.Time // nil: ticks
	ticks    int64

	log   []Op
	cutAt int
	dead  bool
	off   chan struct{} // closed at the power cut
	hook  func(Op) error

	names []*nameOp        // unsynced, oldest first
	last  map[slot]*nameOp // the newest unsynced change of a name

	failed failures // of all files
}

// device is the identity that a crash does not change. Its size is not zero, or all devices would share one address.
type device struct{ _ byte }

// epoch is the first modification time of every instance without a clock. Each further time is a step later. The step
// is odd, to reveal a caller that drops the nanoseconds.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 123_456_789, time.UTC)

const step = 1_000_003 * time.Nanosecond

func (d *disk) now() time.Time {
	if d.clock != nil {
		return d.clock()
	}
	d.ticks++
	return epoch.Add(time.Duration(d.ticks) * step)
}

func (d *disk) newInode(dir bool) *inode {
	d.nextIno++
	n := &inode{ino: d.nextIno, dir: dir, mtime: d.now()}
	n.mtimes = []time.Time{n.mtime}
	if dir {
		n.entries = map[string]*inode{}
		n.kept = map[string]*inode{}
	}
	return n
}

func (d *disk) powerOff() {
	if !d.dead {
		d.dead = true
		close(d.off)
	}
}

// run performs one call: describe names it, effect does it or fails with the given fault. Both run with the lock held;
// the hook runs between them without it.
func (d *disk) run(describe func() Op, effect func(op Op, fault error) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return ErrPowerCut
	}
	op := describe()
	if op.Kind.numbered() {
		op.Index = len(d.log) + 1
		if d.cutAt > 0 && op.Index > d.cutAt {
			return ErrPowerCut // the interrupted operation is still in its hook
		}
		d.log = append(d.log, op)
	}
	fault := d.ask(op)
	if d.dead {
		return ErrPowerCut
	}
	err := effect(op, fault)
	if op.Index > 0 {
		if op.Index == d.cutAt {
			d.powerOff()
			err = ErrPowerCut
		}
		d.log[op.Index-1].Err = err
	}
	return err
}

// ask takes the lock again in a defer, so that a hook may end its goroutine (testing.T.FailNow).
func (d *disk) ask(op Op) error {
	hook := d.hook
	if hook == nil {
		return nil
	}
	d.mu.Unlock()
	defer d.mu.Lock()
	return hook(op)
}

// FS is a folder of an instance: its root, or a result of Sub. Its methods beyond those of [vfs.FS] act on the whole
// instance. All are safe for concurrent use.
type FS struct {
	d      *disk
	root   *inode
	closed bool   // guarded by d.mu
	failed uint64 // its cursor in the disk's failures; guarded by d.mu
	fails  uint64 // calls of SyncAll that failed; guarded by d.mu
}

// slot is a name in a folder.
type slot struct {
	dir  *inode
	name string
}

// effect makes a name lead to node, or to nothing.
type effect struct {
	slot
	node *inode
}

// nameOp is an unsynced change of names. Its effects survive together or not at all.
type nameOp struct {
	op      int
	effects []effect
	after   []*nameOp // changes that must survive with this one; all are older
	// guard lists further changes that must survive if moved has had a durable name. Without them the file would have
	// lost that name and not have the new one.
	moved *inode
	guard []*nameOp
}

func (n *nameOp) needs() []*nameOp {
	if n.moved != nil && n.moved.named {
		return append(slices.Clip(n.after), n.guard...)
	}
	return n.after
}

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

// change is a write (data not nil) or a truncation to size.
type change struct {
	op    int
	state changeState
	off   int64
	data  []byte
	size  int64

	hollow bool // it is to a hollow block, so that no sync makes it durable
}

// failures records the write failures of a file or a disk as Linux does (errseq_t). Each descriptor has a cursor and
// reports the failures since that cursor, once.
type failures struct {
	n    uint64
	told bool // a descriptor has reported the last failure
}

// lockState lists the holders of the lock on a file.
type lockState struct {
	excl   *lock
	shared map[*lock]bool
	freed  chan struct{} // closed and renewed at each release
}

// lock is a flock. It locks the file it opens, so a file removed and created again is another lock.
type lock struct {
	f    *FS
	name string
	held *inode // guarded by f.d.mu

	tenure uint64
}
