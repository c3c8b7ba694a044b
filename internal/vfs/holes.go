package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"iter"
)

// ErrHole is wrapped by errors about a file of text of which a part was never written: it has no bytes on disk, reads as
// zeros, and may be of any size. It wraps [ErrTooLarge].
var ErrHole = fmt.Errorf("%w: a part of it was never written", ErrTooLarge)

// hollow is a file that knows where it has no data.
type hollow interface {
	// data returns the first part at or behind off that has data; from is the size of the file where there is none.
	data(off, size int64) (from, to int64, err error)
}

// Data yields the parts of a file that have data, in order: it is for files that are read without being believed in. Where the
// file system does not tell, there is one part, the whole.
func Data(f File) iter.Seq2[*io.SectionReader, error] {
	return func(yield func(*io.SectionReader, error) bool) {
		size, err := Size(f)
		h, tells := f.(hollow)
		for off := int64(0); off < size && err == nil; {
			from, to := off, size
			if tells {
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

// unbroken fails with ErrHole when a file that is large enough for it to matter has a hole.
func unbroken(f File, info fs.FileInfo) error {
	h, tells := f.(hollow)
	if !tells || info.Size() <= trusted {
		return nil
	}
	if from, to, err := h.data(0, info.Size()); err == nil && (from > 0 || to < info.Size()) {
		return ErrHole
	}
	return nil
}
