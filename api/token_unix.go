//go:build unix

package api

import (
	"errors"
	"io/fs"
)

// private rejects a file that other users may read or change.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return errors.New("other users can read it; run chmod 600")
	}
	return nil
}
