//go:build unix

package reference

import "syscall"

func makePipe(path string) error { return syscall.Mkfifo(path, 0o600) }
