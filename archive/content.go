package archive

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// frame is the content of a message frame. The last user to release it makes its memory available for another frame:
// a walk through a segment decodes one after the other.
type frame struct {
	content []byte
	users   atomic.Int32
}

// spareFrames holds the memory of frames of up to [FrameSize] that is not in use.
var spareFrames = sync.Pool{New: func() any { return new(frame) }}

func (f *frame) take() { f.users.Add(1) }

func (f *frame) release() {
	if f.users.Add(-1) == 0 && cap(f.content) <= FrameSize {
		spareFrames.Put(f)
	}
}

// own returns a row's envelope in memory that survives release. A kept message must not retain its frame unless it
// fills it.
func (f *frame) own(r *Row) ([]byte, error) {
	b, err := envelope(r, f.content)
	if cap(f.content) <= FrameSize {
		b = bytes.Clone(b)
	}
	return b, err
}

// packedFrames holds frames while they are decoded.
var packedFrames = sync.Pool{New: func() any { return new([]byte) }}

// frame returns a block's message frame until release.
func (s *Segment) frame(n int64, b *block) (*frame, error) {
	if f, ok := recentFrames.get(blockOf{s, n}); ok {
		return f, nil
	}
	pooled := packedFrames.Get().(*[]byte)
	defer packedFrames.Put(pooled)
	packed := slices.Grow((*pooled)[:0], int(b.packed))[:b.packed] // at most maxFrame, and within the file
	if b.packed <= 2*FrameSize {
		*pooled = packed
	}
	if err := readAt(s.file, packed, b.offset); err != nil {
		return nil, err
	}
	f := spareFrames.Get().(*frame)
	f.take()
	content, err := f.content[:0], error(nil)
	if b.packed > 0 {
		content, err = decode(packed, b.content, f.content)
	} else if b.content != 0 {
		err = damaged("its messages are missing")
	}
	if err != nil {
		f.release()
		return nil, fmt.Errorf("block %d: %w", n, err)
	}
	if f.content = content; cap(content) <= FrameSize {
		recentFrames.put(blockOf{s, n}, f)
	}
	return f, nil
}
