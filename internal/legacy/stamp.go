package legacy

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// digest combines the hashes of several files. The order does not matter, since a folder lists its files in any order.
type digest [sha256.Size]byte

func (d *digest) add(content []byte) {
	one := sha256.Sum256(content)
	for i := range d {
		d[i] ^= one[i]
	}
}

// stamp is the state of a legacy context's files. A write or a replacement changes it, as far as file times show.
type stamp struct{ digest }

func (s *stamp) add(name string, info fs.FileInfo) {
	s.digest.add(fmt.Appendf(nil, "%s\x00%d %d %d", name, vfs.Number(info), info.Size(), info.ModTime().UnixNano()))
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
	if now != f.stamp {
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
