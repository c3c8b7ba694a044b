// Package disk is a disk that can lose power, with a file system on it.
//
// The disk has a volatile cache, as disks have: what was written is read back at once, and is certain to stay only when
// the cache was flushed since. When the power goes, nothing gets through any more, and of what was written since the
// last flush each block of 4 KiB stays or is lost by itself, in whatever order it was written; of several writes to one
// block an earlier one may stay. Blocks are whole.
//
// It is a file of a FUSE file system, with a loop device on it: Linux turns the flushes and forced writes (FUA) of the
// file system into an fsync of that file. dm-log-writes and dm-flakey would do as well, but few kernels have them. A
// clone of an image in use, made in one instant (FICLONE), has all that the file system wrote, flushed or not: it is
// what is left here when nothing is lost.
//
// It can also refuse some writes. Linux then reports the error once, keeps what it could not write in memory as if it
// were on the disk, and loses it with the power.
//
// What is not tried: a disk that lies about flushes, blocks that are torn, and what was flushed going bad.
package disk

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Loss says what of what was written and not flushed is lost when the power goes.
type Loss string

// The losses.
const (
	Nothing Loss = "nothing"   // as when processes and the system go, and the disk stays
	Writes  Loss = "writes"    // some writes, each whole
	Blocks  Loss = "blocks"    // some blocks of some writes
	Tail    Loss = "tail"      // all from some write on: a disk that keeps the order
	All     Loss = "unflushed" // all
)

// Losses are all losses.
func Losses() []Loss { return []Loss{Nothing, Writes, Blocks, Tail, All} }

// Cut is what a power cut did.
type Cut struct {
	At              time.Time
	Unflushed, Lost int // blocks that were not flushed, and how many of these are lost
	Failed          int // writes that the disk refused, see [Disk.Fail]
	Error           string
}

// Faults says which writes fail with EIO: those that hold one of the texts, this share of them. Nothing of such a write
// reaches the disk. A write is whatever the file system hands over in one piece: other files' blocks beside the text
// fail with it.
type Faults struct {
	Of    []string // none for no fault
	Share float64
	Seed  uint64
}

// order is to cut the power, or to let writes fail.
type order struct {
	Requests int
	Loss     Loss
	Seed     uint64
	Fail     *Faults
}

// Disk is a disk that is there. A process of its own serves it: one that uses what it serves could not be killed, since
// it would wait for itself.
type Disk struct {
	dir    string // where it is mounted
	server *exec.Cmd
	orders io.WriteCloser
	says   *bufio.Reader
	supers *atomic.Uint64 // see Superblocks
}

// On makes a file a disk, and mounts a file system on dir in which it is the file Path names.
//
// The server has a mount namespace of its own, from before the mount: the last process of ours unmounts what is left,
// and that must not be the server, which would have to answer meanwhile.
func On(image, dir string) (d *Disk, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	fd, err := unix.MemfdCreate("superblocks", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	supers := os.NewFile(uintptr(fd), "superblocks")
	defer supers.Close()
	d = &Disk{dir: dir, server: exec.Command(self, image)}
	if d.supers, err = counter(supers); err != nil {
		return nil, err
	}
	d.server.Env = append(os.Environ(), serverEnv+"=1")
	d.server.Stderr, d.server.ExtraFiles = os.Stderr, []*os.File{device, supers}
	d.server.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if d.orders, err = d.server.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.says = bufio.NewReader(out)
	if err := d.server.Start(); err != nil {
		return nil, err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device.Fd())
	if err := unix.Mount("ctxdir-disk", dir, "fuse", 0, options); err != nil {
		return nil, errors.Join(fmt.Errorf("mount a disk: %w", err), d.orders.Close(), d.server.Wait())
	}
	err = json.NewEncoder(d.orders).Encode(order{})
	if err == nil {
		_, err = d.says.ReadString('\n')
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("there is no disk: %w", err), d.Remove())
	}
	return d, nil
}

// Path is the disk.
func (d *Disk) Path() string { return filepath.Join(d.dir, fileName) }

// Superblocks counts how often the disk has made the superblock of btrfs durable. The file system acknowledges nothing
// without it.
func (d *Disk) Superblocks() uint64 { return d.supers.Load() }

// counter is a number that several processes share in a file.
func counter(f *os.File) (*atomic.Uint64, error) {
	if err := f.Truncate(int64(unsafe.Sizeof(atomic.Uint64{}))); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(atomic.Uint64{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return (*atomic.Uint64)(unsafe.Pointer(&b[0])), nil
}

// Remove takes the disk away: what was written and not flushed stays, unless the power was cut. Nobody is to use it any
// more.
func (d *Disk) Remove() error {
	// The loop device may have the file open for a moment still. When it has not, the server ends.
	if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount a disk: %w", err)
	}
	return d.server.Wait()
}

// Fail lets writes fail from now on, until the disk is taken away.
func (d *Disk) Fail(f Faults) error { return json.NewEncoder(d.orders).Encode(order{Fail: &f}) }

// Cut cuts the power when so many requests have come from now on: a random number of them makes it hit writes and
// flushes alike, where a moment of the clock mostly hits the pauses in between. It returns at once; the channel tells
// when the power has gone.
func (d *Disk) Cut(requests int, loss Loss, seed uint64) <-chan Cut {
	gone := make(chan Cut, 1)
	go func() {
		var c Cut
		err := json.NewEncoder(d.orders).Encode(order{Requests: requests, Loss: loss, Seed: seed})
		if err == nil {
			err = json.NewDecoder(d.says).Decode(&c)
		}
		if err != nil {
			c.Error = err.Error()
		}
		gone <- c
	}()
	return gone
}
