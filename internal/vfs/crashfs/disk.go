package crashfs

import (
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
