//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// owned reports whether a file is the user's own.
func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && ownedBy(int(stat.Uid), os.Geteuid(), os.Getenv("SUDO_UID"))
}

// ownedBy reports whether the owner of a file is the user, or the one who became root with sudo.
func ownedBy(owner, user int, sudo string) bool {
	if owner == user {
		return true
	}
	caller, err := strconv.Atoi(sudo)
	return user == 0 && err == nil && owner == caller
}
