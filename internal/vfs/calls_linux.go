package vfs

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func control(f *os.File, op string, call func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	cerr := c.Control(func(fd uintptr) {
		for {
			if err = call(int(fd)); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	if cerr != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: fs.ErrClosed}
	}
	if err != nil {
		return os.NewSyscallError(op, err)
	}
	return nil
}

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR { //nolint:errorlint // a bare number, on every path
			return err
		}
	}
}

// plain reports whether a name is a file's in the folder itself. Such a name cannot escape the folder: the calls below
// follow no link.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsRune(name, '/')
}

// largeFiles lets a 32-bit program open files of more than 2 GiB.
const largeFiles = syscall.O_LARGEFILE

// openTree opens an open folder as an os.Root. The link in /proc leads to the folder itself, whatever its name is by now.
func openTree(folder *os.File) (r *os.Root, err error) {
	err = control(folder, "open", func(fd int) (err error) {
		r, err = os.OpenRoot(links + strconv.Itoa(fd))
		return err
	})
	return r, err
}

// links has a link to each open file of the process.
const links = "/proc/self/fd/"

// hasLinks reports whether the links work. Some systems have no /proc, or let no program follow them.
var hasLinks = sync.OnceValue(func() bool {
	folder, err := os.Open("/")
	if err != nil {
		return false
	}
	defer folder.Close()
	r, err := openTree(folder)
	return err == nil && r.Close() == nil
})
