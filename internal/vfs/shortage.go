package vfs

import (
	"errors"
	"syscall"
)

// IsShortage reports whether process or machine ran out of descriptors or memory. This says nothing about the file.
func IsShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// IsFault reports whether a call failed although what it was to read may be there and good: the disk, the permissions or
// the machine are the cause.
func IsFault(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	return number != syscall.ENOENT && number != syscall.ENOTDIR && number != syscall.EISDIR && number != syscall.ELOOP
}
