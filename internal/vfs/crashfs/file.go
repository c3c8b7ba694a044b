package crashfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// file is an open file. It outlives its name.
type file struct {
	d      *disk
	node   *inode
	name   string
	flag   int
	off    int64
	closed bool
	failed uint64 // its cursor in the file's failures
}

var errOffset = errors.New("negative offset")

// run performs a call on the open file.
func (h *file) run(what string, op Op, effect func(op Op, fault error) error) error {
	err := h.d.run(func() Op {
		op.Path = h.d.pathOf(h.node)
		return op
	}, func(op Op, fault error) error {
		if h.closed {
			return fs.ErrClosed
		}
		return effect(op, fault)
	})
	if errors.Is(err, io.EOF) {
		return err
	}
	return pathError(what, h.name, err)
}

func (h *file) Read(b []byte) (n int, err error) {
	err = h.run("read", Op{Kind: KindRead, Size: int64(len(b))}, func(_ Op, fault error) error {
		n, err = h.read(b, h.off, fault)
		h.off += int64(n)
		return err
	})
	return n, err
}

func (h *file) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, pathError("readat", h.name, errOffset)
	}
	if len(b) == 0 {
		return 0, nil // as os.File, without checking for a closed file
	}
	err = h.run("read", Op{Kind: KindRead, Off: off, Size: int64(len(b))}, func(_ Op, fault error) error {
		n, err = h.read(b, off, fault)
		if err == nil && n < len(b) {
			err = io.EOF
		}
		return err
	})
	return n, err
}

func (h *file) read(b []byte, off int64, fault error) (int, error) {
	switch {
	case fault != nil:
		return 0, fault
	case len(b) == 0:
		return 0, nil
	case h.flag&os.O_WRONLY != 0:
		return 0, syscall.EBADF
	case h.node.dir:
		return 0, syscall.EISDIR
	}
	n := h.node.now.readAt(b, off)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (h *file) writable() bool { return h.flag&(os.O_WRONLY|os.O_RDWR) != 0 }

func (h *file) Write(b []byte) (n int, err error) {
	op := Op{Kind: KindWrite, Size: int64(len(b))}
	err = h.run("write", op, func(op Op, fault error) error {
		if h.flag&os.O_APPEND != 0 {
			h.off = h.node.now.size
		}
		n, err = h.write(op, b, h.off, fault)
		h.off += int64(n)
		return err
	})
	return n, err
}

func (h *file) WriteAt(b []byte, off int64) (n int, err error) {
	if h.flag&os.O_APPEND != 0 {
		return 0, pathError("writeat", h.name, errors.New("file opened with O_APPEND"))
	}
	if off < 0 {
		return 0, pathError("writeat", h.name, errOffset)
	}
	if len(b) == 0 {
		return 0, nil
	}
	op := Op{Kind: KindWrite, Off: off, Size: int64(len(b))}
	err = h.run("write", op, func(op Op, fault error) error {
		n, err = h.write(op, b, off, fault)
		return err
	})
	return n, err
}

func (h *file) write(op Op, b []byte, off int64, fault error) (int, error) {
	if !h.writable() {
		return 0, syscall.EBADF
	}
	if off+int64(len(b)) > maxSize {
		return 0, syscall.EFBIG
	}
	if fault != nil {
		var short *ShortWrite
		if !errors.As(fault, &short) {
			return 0, fault
		}
		b, fault = b[:min(short.N, len(b))], short.Err
	}
	if len(b) > 0 {
		h.node.change(change{op: op.Index, off: off, data: append([]byte{}, b...)}, h.d.now())
	}
	return len(b), fault
}

func (h *file) Truncate(size int64) error {
	return h.run("truncate", Op{Kind: KindTruncate, Size: size}, func(op Op, fault error) error {
		switch {
		case fault != nil:
			return fault
		case size < 0 || !h.writable():
			return syscall.EINVAL
		case size > maxSize:
			return syscall.EFBIG
		}
		h.node.change(change{op: op.Index, size: size}, h.d.now())
		return nil
	})
}

func (h *file) SetModTime(t time.Time) error {
	return h.run("utimensat", Op{Kind: KindSetModTime}, func(_ Op, fault error) error {
		if fault == nil {
			h.node.touch(t)
		}
		return fault
	})
}

func (h *file) Sync() error     { return h.sync("sync", KindSync) }
func (h *file) Datasync() error { return h.sync("fdatasync", KindDatasync) }

func (h *file) sync(what string, kind Kind) error {
	if h.node.dir {
		kind = KindSyncDir
	}
	return h.run(what, Op{Kind: kind}, func(op Op, fault error) error {
		if h.node.dir {
			if fault == nil {
				h.d.syncDir(h.node, op)
			}
			return fault
		}
		told := h.node.failed.since(&h.failed)
		if fault == nil && told != nil {
			return told
		}
		h.d.syncFile(h.node, op, fault)
		if fault != nil {
			_ = h.node.failed.since(&h.failed) // this call reports the failure
		} else if kind == KindSync && op.Index != h.d.cutAt {
			h.node.settleTime()
		}
		return fault
	})
}

// syncFile leaves the content alone if the operation is the interrupted one: Crash decides.
func (d *disk) syncFile(n *inode, op Op, fault error) {
	switch {
	case op.Index == d.cutAt || errors.Is(fault, errors.ErrUnsupported):
	case fault != nil:
		d.fail(n, op.Index)
	default:
		n.settle(op.Index)
	}
}

// fail marks the data written to a file before operation op clean.
func (d *disk) fail(n *inode, op int) {
	if n.mark(op, lost) {
		n.dig()
		n.failed.add()
		d.failed.add()
	}
}

// syncDir leaves the names alone if the operation is the interrupted one: Crash decides.
func (d *disk) syncDir(n *inode, op Op) {
	if op.Index == d.cutAt {
		return
	}
	d.settleNames(d.within(func(dir *inode) bool { return dir == n }, op.Index))
	n.settleTime()
}

func (h *file) Stat() (info fs.FileInfo, err error) {
	err = h.run("stat", Op{Kind: KindStat}, func(_ Op, fault error) error {
		if fault == nil {
			info = h.d.info(h.node, h.name)
		}
		return fault
	})
	return info, err
}

// Close closes the file whatever it returns, as close(2) does.
func (h *file) Close() error {
	err := h.run("close", Op{Kind: KindClose}, func(_ Op, fault error) error {
		h.closed = true
		return fault
	})
	return err
}
