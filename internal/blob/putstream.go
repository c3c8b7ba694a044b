package blob

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// putStream stores a payload of more than a block. Its name is known only at the end. So the temporary file is in the
// folder of blobs, and the rename moves it into its fan-out folder.
func (s *Store) putStream(head []byte, rest io.Reader) (sum Sum, size int64, created bool, err error) {
	if err := s.mkdir(Folder); err != nil {
		return sum, 0, false, err
	}
	in := &hashReader{r: rest, sum: sha256.New(), size: int64(len(head))}
	in.sum.Write(head)
	tmp := temporary(Folder)
	err = s.create(tmp, true, func(f vfs.File) error {
		if _, err := f.Write(header(0)); err != nil {
			return err
		}
		if err := writeFrame(f, io.MultiReader(bytes.NewReader(head), in)); err != nil {
			return err
		}
		// The size is known now. Nothing reads it before the rename.
		_, err := f.WriteAt(header(in.size), 0)
		return err
	})
	if err != nil {
		return sum, 0, false, err
	}
	in.sum.Sum(sum[:0])
	there, err := s.Share(sum, true)
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

// hashReader counts and hashes the bytes read through it.
type hashReader struct {
	r    io.Reader
	sum  hash.Hash
	size int64
}

func (h *hashReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.sum.Write(p[:n])
	h.size += int64(n)
	if err != nil && !isEnd(err) {
		err = fmt.Errorf("payload: %w", err)
	}
	return n, err
}

// fill reads until block is full or the payload ends. It does not use io.ReadFull, which cannot distinguish the end
// from a reader that fails with io.ErrUnexpectedEOF, as a cut connection does.
func fill(r io.Reader, block []byte) (n int, err error) {
	for n < len(block) {
		m, err := r.Read(block[n:])
		n += m
		switch {
		case isEnd(err):
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

// isEnd reports whether a reader's error is io.EOF itself. An error that merely wraps io.EOF is a failure.
func isEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // see above
}
