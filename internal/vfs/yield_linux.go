package vfs

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Yield lets waiting goroutines and threads run. Work behind the commits yields between two files: otherwise Linux may
// leave its thread on the processor for milliseconds while an append waits there, although its sync has ended.
func Yield() {
	runtime.Gosched()
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
