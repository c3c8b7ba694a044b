package vfs

import (
	"errors"
	"syscall"
)

// IsShortage reports whether process or machine ran out of descriptors or memory. This says nothing about the file.
func IsShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
