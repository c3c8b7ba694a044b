//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops what was typed on a terminal and not read yet.
func discardTyped(f *os.File) {
	const input = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, input)
}
