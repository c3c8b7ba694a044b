//go:build unix

package disk

import (
	"io/fs"
	"syscall"
)

// allocated is the room that a file takes on the disk, in bytes.
func allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512 // POSIX leaves the unit open; every system has this one
	}
	return info.Size()
}
