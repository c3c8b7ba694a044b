//go:build unix

package vfs

import "syscall"

// Opening a FIFO in the place of a file must not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | largeFiles

// Nor must a FIFO in the place of a folder.
const folderFlags = syscall.O_DIRECTORY | syscall.O_NONBLOCK
