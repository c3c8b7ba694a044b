package blob

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"sync"

	"github.com/ctxdir/ctxdir/internal/unzstd"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/klauspost/compress/zstd"
)

// Open returns a blob's payload as a stream, and its size in bytes. Only the end of the stream verifies the payload. If
// the payload does not match the name, the Read that would have returned io.EOF, or an earlier one, returns an error
// that wraps [ErrDamaged]. The stream never returns more than size bytes. Memory is bounded whatever the file claims.
// The error wraps fs.ErrNotExist if the blob does not exist.
func (s *Store) Open(sum Sum) (payload io.ReadCloser, size int64, err error) {
	f, _, err := s.open(sum, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	r, err := newReader(f, sum)
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return r, r.left, nil
}

// Get returns a verified payload of at most limit bytes. For a larger one the error wraps vfs.ErrTooLarge.
func (s *Store) Get(sum Sum, limit int64) ([]byte, error) {
	if b, ok := s.getSmall(sum, limit); ok {
		return b, nil
	}
	f, info, err := s.open(sum, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := newReader(f, sum)
	if err != nil {
		return nil, err
	}
	defer r.release()
	if r.left > limit {
		return nil, fmt.Errorf("blob %s: %w: %d bytes exceed the limit of %d", sum, vfs.ErrTooLarge, r.left, limit)
	}
	// The size is the file's claim. Beyond the common content of a file of its length, allocate as bytes arrive.
	size := r.left
	b := make([]byte, 0, min(size, 16*min(info.Size(), 1<<32)))
	for int64(len(b)) < size {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(size, 2*int64(cap(b)))), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			return nil, err
		}
	}
	// Only the read after the last byte verifies the payload.
	if _, err := r.Read(make([]byte, 1)); !isEnd(err) {
		return nil, err
	}
	return b, nil
}

// smallFile is the most bytes that the file of a blob may have to be read and decoded at once.
const smallFile = 256 << 10

// smallPayload is the most bytes that such a file may hold.
const smallPayload = 1 << 20

// getSmall is Get for a small blob that is whole, without a stream: it reads the file in one piece and decodes it into
// one. The caller takes any other blob as a stream, which finds out what is wrong.
func (s *Store) getSmall(sum Sum, limit int64) ([]byte, bool) {
	file, err := vfs.ReadRegular(s.fs, Path(sum), smallFile)
	if err != nil {
		return nil, false
	}
	size, err := readHeader(bytes.NewReader(file))
	if err != nil || size > min(limit, smallPayload) {
		return nil, false
	}
	b, err := unzstd.All(file[headerSize:], make([]byte, 0, size))
	return b, err == nil && int64(len(b)) == size && SumOf(b) == sum
}

// Verify reads a blob and reports its damage: an error that wraps [ErrDamaged] or fs.ErrNotExist.
func (s *Store) Verify(sum Sum) error {
	return s.VerifyFile(Path(sum), sum)
}

// VerifyFile is Verify for the file of a blob that is elsewhere in the store's folder.
func (s *Store) VerifyFile(path string, sum Sum) error {
	f, _, err := s.openFile(path, sum, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	return verify(f, sum)
}

// verify reads an open blob. It does not close the file.
func verify(f vfs.File, sum Sum) error {
	r, err := newReader(f, sum)
	if err != nil {
		return err
	}
	defer r.release()
	_, err = io.Copy(io.Discard, r)
	return err
}

// decoder holds the parts that are expensive to make, for reuse.
type decoder struct {
	zstd *zstd.Decoder
	in   *bufio.Reader // frames have small parts, each of which the decoder reads separately
}

var decoders = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), // no goroutines: a decoder the pool drops needs no Close
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(unzstd.MaxWindow),
		zstd.WithDecoderMaxMemory(math.MaxInt64), // for a stream this limits its length, not memory
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return &decoder{z, bufio.NewReaderSize(nil, 16<<10)}
}}

// reader verifies a payload while reading.
type reader struct {
	file vfs.File
	sum  Sum
	src  source
	dec  *decoder
	hash hash.Hash
	left int64 // bytes still to come
	err  error // the result of every further Read
}

// source keeps the error of reading the file apart from the decoder's error.
type source struct {
	f   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.f.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func newReader(f vfs.File, sum Sum) (*reader, error) {
	length, err := vfs.Size(f)
	if err != nil {
		return nil, err
	}
	hollow := vfs.HasHole(f, 0, length)
	r := &reader{file: f, sum: sum, src: source{f: f}, dec: decoders.Get().(*decoder), hash: sha256.New()}
	r.dec.in.Reset(&r.src)
	size, err := readHeader(r.dec.in)
	if err == nil && hollow && length-length/4 > size {
		err = vfs.ErrHole // skippable frames could be of any size here
	}
	if err == nil {
		r.left = size
		err = r.dec.zstd.Reset(r.dec.in)
	}
	if err != nil {
		r.release()
		if r.src.err != nil {
			return nil, fmt.Errorf("blob %s: %w", sum, r.src.err)
		}
		return nil, headerError(sum, err)
	}
	return r, nil
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.left == 0 {
		r.err = r.end()
		return 0, r.err
	}
	n, err := r.dec.zstd.Read(p[:min(int64(len(p)), r.left)])
	r.hash.Write(p[:n])
	r.left -= int64(n)
	switch {
	case isEnd(err) && r.left > 0:
		r.err = damaged(r.sum, "%d bytes are missing", r.left)
	case err != nil && !isEnd(err):
		r.err = r.failed(err)
	}
	return n, r.err
}

// end runs after as many bytes as the header promised. It returns io.EOF if they are the payload.
func (r *reader) end() error {
	var one [1]byte
	switch _, err := io.ReadFull(r.dec.zstd, one[:]); {
	case err == nil:
		return damaged(r.sum, "it is longer than the size in its header")
	case err != io.EOF:
		return r.failed(err)
	}
	if got := Sum(r.hash.Sum(nil)); got != r.sum {
		return damaged(r.sum, "its payload is %s", got)
	}
	return io.EOF
}

func (r *reader) failed(err error) error {
	if r.src.err != nil {
		return fmt.Errorf("blob %s: %w", r.sum, r.src.err)
	}
	return damaged(r.sum, "%v", err)
}

// Close closes the file. Later reads fail.
func (r *reader) Close() error {
	if r.dec == nil {
		return nil
	}
	r.release()
	return r.file.Close()
}

func (r *reader) release() {
	r.err = fmt.Errorf("blob %s: %w", r.sum, os.ErrClosed)
	_ = r.dec.zstd.Reset(nil)
	r.dec.in.Reset(nil)
	decoders.Put(r.dec)
	r.dec = nil
}
