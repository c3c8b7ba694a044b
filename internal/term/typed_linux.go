package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// DiscardTyped drops what was typed on a terminal and not read yet.
func DiscardTyped(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
