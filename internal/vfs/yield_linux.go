package vfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// Yield lets waiting threads run. Work behind the commits yields between two files: otherwise Linux may leave its
// thread on the processor for milliseconds while an append waits there, although its sync has ended.
func Yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// rest is a short sleep. Where nothing else runs, time.Sleep takes a millisecond at least.
func rest(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil)
}
