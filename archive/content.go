package archive

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// frame is the content of a message frame. The last user to release it makes its memory available for another frame:
// a walk through a pack decodes one after the other.
type frame struct {
	content []byte
	users   atomic.Int32
}

// spareFrames holds the memory of frames of up to [FrameSize] that nobody uses.
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

// frame returns a segment's message frame until release.
func (p *Pack) frame(n int64, s *segment) (*frame, error) {
	if f, ok := p.frames.get(n); ok {
		return f, nil
	}
	packed := packedFrames.Get().(*[]byte)
	defer packedFrames.Put(packed)
	b := slices.Grow((*packed)[:0], int(s.packed))[:s.packed] // at most maxFrame, and within the file
	if s.packed <= FrameSize {
		*packed = b
	}
	if err := readAt(p.file, b, s.offset); err != nil {
		return nil, err
	}
	f := spareFrames.Get().(*frame)
	f.take()
	content, err := decode(b, s.content, f.content)
	if err != nil {
		f.release()
		return nil, fmt.Errorf("segment %d: %w", n, err)
	}
	if f.content = content; cap(content) <= FrameSize {
		p.frames.put(n, f)
	}
	return f, nil
}
