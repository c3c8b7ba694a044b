package legacy

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// stamp is the state of a legacy context's files. A write or a replacement changes it, as far as file times show.
type stamp [sha256.Size]byte

// add adds a file. The order does not matter.
func (s *stamp) add(name string, info fs.FileInfo) {
	one := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d %d %d", name, vfs.Number(info), info.Size(), info.ModTime().UnixNano()))
	for i := range s {
		s[i] ^= one[i]
	}
}

// Unchanged fails with [ErrChanged] if the inodes, sizes or times of the files under name differ from those read.
func (f *File) Unchanged(name string) error {
	var now stamp
	look := func(file string) error {
		info, err := f.fs.Lstat(name + file)
		if err == nil {
			now.add(file, info)
		}
		return err
	}
	if f.Format == Monolithic {
		if err := look(""); err != nil {
			return err
		}
	} else if err := f.lookAround(name, look); err != nil {
		return err
	}
	if now != f.looked {
		return ErrChanged
	}
	return nil
}

// lookAround calls look for every file of a split context.
func (f *File) lookAround(name string, look func(file string) error) error {
	if err := look("/" + ContextFile); err != nil {
		return err
	}
	if err := look("/" + PromptFile); err != nil && !notThere(err) {
		return err
	}
	for e, err := range f.fs.ReadDir(name + "/" + PoolFolder) {
		if err != nil {
			return err
		}
		if isNodeFile(e.Name()) {
			if err := look("/" + PoolFolder + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNodeFile reports whether a name in the pool's folder is that of a node.
func isNodeFile(name string) bool {
	return strings.HasSuffix(name, nodeEnd) && !strings.HasPrefix(name, ".")
}
