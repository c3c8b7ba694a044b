//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package term

import "os"

// DiscardTyped does nothing: the system has no portable call for it.
func DiscardTyped(*os.File) {}
