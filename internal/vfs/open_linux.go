package vfs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openExisting opens a file of the folder itself with one call. The system refuses to open a link, and to open a folder
// for writing.
func (o *osFS) openExisting(name string, flag int) (*os.File, error) {
	if !plain(name) {
		return o.openInRoot(name, flag, false)
	}
	if flag&os.O_RDWR == 0 { // a FIFO in the place of a file would block a reader, but not a caller that may write
		flag |= unix.O_NONBLOCK
	}
	f, err := o.openPlain(name, flag)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	return f, err
}

// create makes a new file.
func (o *osFS) create(name string, flag int) (*os.File, error) {
	if !plain(name) {
		return o.createInRoot(name, flag)
	}
	return o.openPlain(name, flag|os.O_EXCL)
}

// openPlain opens or makes a file of the folder itself, and follows no link to it.
func (o *osFS) openPlain(name string, flag int) (f *os.File, err error) {
	err = o.at("openat", name, func(dir int) error {
		var fd int
		err := again(func() (err error) {
			fd, err = unix.Openat(dir, name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|largeFiles, filePerm)
			return err
		})
		if err == nil {
			f = os.NewFile(uintptr(fd), o.dir+"/"+name)
		}
		return err
	})
	return f, err
}

// openFolder opens a folder with one call for each element of the path, and returns its Stat. The system refuses to open
// a link, or anything else. openFolder returns errors.ErrUnsupported if the folder cannot be opened so: the path to it
// may lead through a link.
func (o *osFS) openFolder(name string) (*os.File, fs.FileInfo, error) {
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		outer, _, err := o.openFolder(name[:i])
		if err != nil {
			return nil, nil, errors.ErrUnsupported
		}
		defer outer.Close()
		f, info, err := (&osFS{self: outer, dir: o.dir + "/" + name[:i]}).openFolder(name[i+1:])
		var at *fs.PathError
		if errors.As(err, &at) {
			at.Path = name
		}
		return f, info, err
	}
	if !plain(name) || !hasLinks() {
		return nil, nil, errors.ErrUnsupported
	}
	f, err := o.openPlain(name, os.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
	}
	if err != nil {
		return nil, nil, err
	}
	info := &statInfo{name: name}
	err = control(f, "fstat", func(fd int) error { return unix.Fstat(fd, &info.st) })
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
