package blob

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// putStream stores a payload of more than a block. Its name is known only at the end, so the temporary file lies
// in the folder of blobs and moves into its fan-out folder by the rename.
func (s *Store) putStream(head []byte, rest io.Reader) (sum Sum, size int64, created bool, err error) {
	if err := s.fs.Mkdir(Folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return sum, 0, false, err
	}
	in := &hashed{r: rest, sum: sha256.New(), size: int64(len(head))}
	in.sum.Write(head)
	tmp := temporary(Folder)
	err = s.create(tmp, true, func(f vfs.File) error {
		if _, err := f.Write(appendHeader(nil, 0)); err != nil {
			return err
		}
		if err := writeFrames(f, head, in); err != nil {
			return err
		}
		// The size is known now. Until the rename nobody reads it.
		_, err := f.WriteAt(appendHeader(nil, in.size), 0)
		return err
	})
	if err != nil {
		return sum, 0, false, err
	}
	in.sum.Sum(sum[:0])
	there, err := s.reuse(sum, true)
	if there || err != nil {
		_ = s.fs.Remove(tmp)
		return sum, in.size, false, err
	}
	if err := s.makeDurableFolders(sum); err != nil {
		_ = s.fs.Remove(tmp)
		return sum, in.size, false, err
	}
	return sum, in.size, true, s.settle(tmp, sum)
}

// hashed counts and sums what is read through it.
type hashed struct {
	r    io.Reader
	sum  hash.Hash
	size int64
}

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.sum.Write(p[:n])
	h.size += int64(n)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("payload: %w", err)
	}
	return n, err
}
