package vfs

import "io/fs"

// at calls f with the folder's descriptor.
func (o *osFS) at(op, name string, f func(dir int) error) error {
	d, err := o.handle()
	if err != nil {
		return err
	}
	c, err := d.SyscallConn()
	if err != nil {
		return err
	}
	cerr := c.Control(func(fd uintptr) { err = f(int(fd)) })
	if cerr != nil {
		err = fs.ErrClosed
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}
