package engine

import (
	"errors"
	"os"
	"syscall"
)

// lockFile waits for a lock that lasts until f is closed.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
