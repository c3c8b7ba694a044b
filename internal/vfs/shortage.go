package vfs

import (
	"errors"
	"syscall"
)

// IsShortage reports whether an error says that the process or the machine is out of descriptors or memory. It tells nothing about the file.
func IsShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
