package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// FileSystems are those there are.
func FileSystems() []string { return []string{"ext4", "xfs", "btrfs"} }

// Make makes an image with a file system on it.
func Make(fs, image string, size int64) error {
	f, err := os.OpenFile(image, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	args := map[string][]string{"ext4": {"-q", "-F", "-b", "4096"}, "xfs": {"-q", "-s", "size=4096"}, "btrfs": {"-q", "-s", "4096"}}[fs]
	if out, err := exec.Command("mkfs."+fs, append(args, image)...).CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.%s: %w: %s", fs, err, out)
	}
	return nil
}

// Mount mounts the file system of a disk, by a loop device that goes when it is unmounted.
func (d *Disk) Mount(fs, dir string) error {
	loop, err := d.attach()
	if err != nil {
		return fmt.Errorf("loop device: %w", err)
	}
	defer loop.Close()
	if err := unix.Mount(loop.Name(), dir, fs, 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", fs, err)
	}
	return nil
}

// attach makes a loop device of the disk. It is detached when nobody has it open any more.
func (d *Disk) attach() (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	backing, err := os.OpenFile(d.Path(), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	config := unix.LoopConfig{Fd: uint32(backing.Fd()), Size: blockSize, Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err = unix.IoctlLoopConfigure(int(loop.Fd()), &config); err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) { // somebody was faster
			return nil, err
		}
	}
}

// Shutdown is how a file system ends by force: everything fails from then on, and what it has not written yet is gone.
type Shutdown int

// The ends that ext4 and XFS know.
const (
	LogFlushed Shutdown = 1 // its log is written to the disk before
	LogLost    Shutdown = 2
)

// ShutsDown reports whether a file system can be ended.
func ShutsDown(fs string) bool { return slices.Contains([]string{"ext4", "xfs"}, fs) }

// shutdown is EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN.
const shutdown = 0x8004587d

// End ends the file system that is mounted on dir.
func End(dir string, how Shutdown) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), shutdown, int(how))
}

// Unmount unmounts what is mounted on dir. The library leaves it to the runtime to close some folders: until it has,
// the file system is busy.
func Unmount(dir string) error {
	var err error
	for range 100 {
		if err = unix.Unmount(dir, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		runtime.GC()
	}
	if err != nil {
		return fmt.Errorf("unmount a file system: %w", err)
	}
	return nil
}
