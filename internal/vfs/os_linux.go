package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (f osFile) Sync() error { return f.inTurn(f.File.Sync) }

func (f osFile) Datasync() error {
	return f.inTurn(func() error { return control(f.File, "fdatasync", unix.Fdatasync) })
}

// syncDir syncs a folder, which other goroutines may sync through the same descriptor.
func syncDir(f *os.File) error {
	folder := osFile{f}
	if folder.mayReturnEarly() {
		err := control(folder.File, "open", func(fd int) error {
			own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err == nil {
				folder.File = os.NewFile(uintptr(own), f.Name())
			}
			return err
		})
		if err != nil {
			return err
		}
		defer folder.Close()
	}
	return folder.Sync()
}

// inTurn waits on btrfs until no other sync of the file or folder runs, in whichever process. There a sync can return
// nil before anything is durable, if another one has logged the file meanwhile, in the first log since the file system
// committed a transaction: seen with Linux 6.18, test/cmd/earlysync shows it. No other goroutine has the descriptor.
func (f osFile) inTurn(sync func() error) error {
	// Whoever cannot lock syncs all the same.
	if f.mayReturnEarly() && control(f.File, "flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_EX) }) == nil {
		defer func() { _ = control(f.File, "flock", func(fd int) error { return unix.Flock(fd, unix.LOCK_UN) }) }()
	}
	return sync()
}

// mayReturnEarly reports whether the file is on btrfs, or on overlayfs, which may be on btrfs.
func (f osFile) mayReturnEarly() bool {
	var st unix.Statfs_t
	err := control(f.File, "fstatfs", func(fd int) error { return unix.Fstatfs(fd, &st) })
	kind := uint32(st.Type)
	return err == nil && (kind == unix.BTRFS_SUPER_MAGIC || kind == unix.OVERLAYFS_SUPER_MAGIC)
}

func (f osFile) SetModTime(t time.Time) error {
	return control(f.File, "utimensat", func(fd int) error { return setModTime(fd, t) })
}

// renameNew works in the folders themselves: the names are plain.
func renameNew(folder *os.File, from string, there *os.File, to string) error {
	err := control(folder, "renameat2", func(fd int) error {
		return control(there, "renameat2", func(other int) error {
			return unix.Renameat2(fd, from, other, to, unix.RENAME_NOREPLACE)
		})
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: number}
	}
	return err
}

// withoutRoot returns the folder f as another file. Package os examines each entry of a folder that it opened in an
// os.Root; elsewhere it takes the type from the folder itself.
func withoutRoot(f *os.File) (folder *os.File, err error) {
	err = control(f, "dup", func(fd int) error {
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			folder = os.NewFile(uintptr(again), f.Name())
		}
		return err
	})
	return folder, err
}

func syncAll(f *os.File) error {
	return control(f, "syncfs", unix.Syncfs)
}

func (o *osFS) createFile(name string, data []byte, at time.Time) error {
	if !plain(name) {
		return createFile(o, name, data, at)
	}
	return o.at("openat", name, func(dir int) error { return createAt(dir, name, data, at) })
}

func createAt(dir int, name string, data []byte, at time.Time) (err error) {
	var fd int
	err = again(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|largeFiles, filePerm)
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := unix.Close(fd); err == nil && !errors.Is(cerr, unix.EINTR) { // the descriptor is gone either way
			err = cerr
		}
	}()
	return fill(fd, data, at)
}

// fill sets the content, the time and, whatever the umask, the permissions of a new file.
func fill(fd int, data []byte, at time.Time) error {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MODE, &st)
	if err != nil || st.Mode&0o777 != filePerm {
		if err := unix.Fchmod(fd, filePerm); err != nil {
			return err
		}
	}
	for len(data) > 0 {
		var n int
		err := again(func() (err error) {
			n, err = unix.Write(fd, data)
			return err
		})
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return setModTime(fd, at)
}

func setModTime(fd int, t time.Time) error {
	at, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(fd, "", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, at}, unix.AT_EMPTY_PATH)
}

func (o *osFS) loadFile(name string, size int64) ([]byte, error) {
	if !plain(name) || size < 0 || size > trusted {
		return loadFile(o, name, size)
	}
	var b []byte
	err := o.at("openat", name, func(dir int) (err error) {
		b, err = loadAt(dir, name, size)
		return err
	})
	return b, err
}

func (o *osFS) loadFiles(n int, file func(i int) (name string, size int64), loaded func(i int, b []byte)) {
	_ = o.at("openat", ".", func(dir int) error {
		for i := range n {
			name, size := file(i)
			if !plain(name) || size < 0 || size > trusted {
				continue
			}
			if b, err := loadAt(dir, name, size); err == nil {
				loaded(i, b)
			}
		}
		return nil
	})
}

func loadAt(dir int, name string, size int64) ([]byte, error) {
	fd, err := openAt(dir, name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)                            //nolint:errcheck // nothing was written
	return preadAll(fd, make([]byte, size+1), size) // the extra byte reveals a longer file
}

func (o *osFS) readFile(name string, limit int64) ([]byte, fs.FileInfo, error) {
	if !plain(name) {
		return readFile(o, name, limit)
	}
	return o.readWith(openAt, name, limit)
}

func (o *osFS) readWith(open func(dir int, name string) (fd int, err error), name string, limit int64) ([]byte, fs.FileInfo, error) {
	var b []byte
	info := &statInfo{name: name}
	err := o.at("read", name, func(dir int) error {
		fd, err := open(dir, name)
		if err != nil {
			return err
		}
		defer unix.Close(fd) //nolint:errcheck // nothing was written
		if err := unix.Fstat(fd, &info.st); err != nil {
			return err
		}
		switch {
		case !info.Mode().IsRegular():
			return ErrNotRegular
		case info.Size() > limit:
			return ErrTooLarge
		case info.Size() > trusted:
			if hole, err := unix.Seek(fd, 0, unix.SEEK_HOLE); err == nil && hole < info.Size() {
				return ErrHole
			}
		}
		b, err = preadAll(fd, make([]byte, info.Size()), info.Size())
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return b, info, nil
}

func openAt(dir int, name string) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|openFlags|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// preadAll reads from the beginning of a file until b is full, size is reached or the file ends.
func preadAll(fd int, b []byte, size int64) ([]byte, error) {
	n := 0
	for n < len(b) && int64(n) != size {
		var m int
		err := again(func() (err error) {
			m, err = unix.Pread(fd, b[n:], int64(n))
			return err
		})
		if err != nil {
			return nil, err
		}
		if n += m; m == 0 {
			break
		}
	}
	return b[:n], nil
}
