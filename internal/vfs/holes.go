package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
)

// trusted is how much may be allocated for a file on an unverified size.
const trusted = 1 << 20

// ErrHole is wrapped by errors about a text file with an unwritten part. Such a part has no bytes on disk, reads as
// zeros, and may be of any size. ErrHole wraps [ErrTooLarge].
var ErrHole = fmt.Errorf("%w: part of it was never written", ErrTooLarge)

// holeFinder is a file that can locate its data.
type holeFinder interface {
	// data returns the first part at or after off that has data. from is the size of the file if there is none.
	data(off, size int64) (from, to int64, err error)
}

// Data yields the parts of a file that have data, in order. Use it for files that are read without trust. If the file
// system does not report holes, Data yields the whole file as one part.
func Data(f File) iter.Seq2[*io.SectionReader, error] {
	return func(yield func(*io.SectionReader, error) bool) {
		size, err := Size(f)
		h, ok := f.(holeFinder)
		for off := int64(0); off < size && err == nil; {
			from, to := off, size
			if ok {
				from, to, err = h.data(off, size)
			}
			if err != nil || from >= size || to <= from {
				break
			}
			if !yield(io.NewSectionReader(f, from, to-from), nil) {
				return
			}
			off = to
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// unbroken fails with ErrHole if a file above the trusted size has a hole.
func unbroken(f File, info fs.FileInfo) error {
	h, ok := f.(holeFinder)
	if !ok || info.Size() <= trusted {
		return nil
	}
	if from, to, err := h.data(0, info.Size()); err == nil && (from > 0 || to < info.Size()) {
		return ErrHole
	}
	return nil
}

// NextData returns where the next part with data begins, at or after off. It returns the size of the file if there is
// none, and off if the file system does not report holes. The skipped part reads as zeros.
func NextData(f io.ReaderAt, off, size int64) int64 {
	if h, ok := f.(holeFinder); ok && off < size {
		if from, _, err := h.data(off, size); err == nil {
			return max(off, min(from, size))
		}
	}
	return off
}

// HasHole reports whether a part of [from, to) was never written. A range short enough to read counts as whole.
func HasHole(f io.ReaderAt, from, to int64) bool {
	h, ok := f.(holeFinder)
	if !ok || to-from <= trusted {
		return false
	}
	begins, ends, err := h.data(from, to)
	return err == nil && (begins > from || ends < to)
}

// ReadData returns the content of a file from off on, without unwritten parts, up to most bytes.
func ReadData(f File, off, most int64) (b []byte, err error) {
	for part, err := range Data(f) {
		if err != nil {
			return nil, err
		}
		_, at, n := part.Outer()
		from := max(at, off)
		if n = min(at+n-from, most-int64(len(b))); n <= 0 {
			continue
		}
		piece := make([]byte, n)
		if m, err := f.ReadAt(piece, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		} else if b = append(b, piece[:m]...); int64(m) < n {
			break
		}
	}
	return b, nil
}

// CopyFile copies a file to a new one, with its holes. Zeros take the place of what cannot be read. It syncs nothing.
func CopyFile(ctx context.Context, to FS, copied string, from FS, name string) error {
	in, err := from.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	size, err := Size(in)
	if err != nil {
		return err
	}
	out, err := to.OpenFile(copied, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	b := make([]byte, min(size, 256<<10))
	for at := NextData(in, 0, size); at < size && err == nil; at = NextData(in, at+int64(len(b)), size) {
		b = b[:min(int64(len(b)), size-at)]
		if _, rerr := in.ReadAt(b, at); rerr != nil && !errors.Is(rerr, io.EOF) {
			clear(b)
		}
		if _, err = out.WriteAt(b, at); err == nil {
			err = ctx.Err()
		}
	}
	if err == nil {
		err = out.Truncate(size)
	}
	return errors.Join(err, out.Close())
}

// Size returns the length of an open file without querying its times. After such a query, the next write sets a new time
// (multigrain timestamps, Linux 6.13), which ext4 writes to its journal: the fdatasync after that takes 1.5 times as long.
func Size(f File) (int64, error) {
	if s, ok := f.(interface{ size() (int64, error) }); ok {
		return s.size()
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
