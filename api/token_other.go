//go:build !unix

package api

import (
	"errors"
	"io/fs"
)

// private rejects what is not a file. The folder of the user protects the file where modes do not.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}
