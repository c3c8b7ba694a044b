package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops what was typed on a terminal and not read yet.
func discardTyped(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
