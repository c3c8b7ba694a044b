package archive

import (
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Message is a row with its envelope.
type Message struct {
	Row
	Envelope []byte // without a newline; read-only
}

// ahead is the most frames that are decoded at once.
var ahead = min(runtime.GOMAXPROCS(0), 4)

// ReadMessage returns the verified envelope of a row from this segment, without a newline. It uses the row's Line,
// Position, Size, Sum and Place. It decodes at most one frame. The error wraps [ErrDamaged]. The caller owns the slice.
func (s *Segment) ReadMessage(r Row) ([]byte, error) {
	f, err := s.frameOf(r.block, r.Size)
	if err != nil {
		return nil, s.wrap(err)
	}
	defer f.release()
	b, err := f.own(&r)
	if err != nil {
		return nil, s.wrap(err)
	}
	return b, nil
}

// ReadMessages returns the envelopes of rows from this segment, as [Segment.ReadMessage] does, in their order. It decodes
// each frame once, several at a time. An unavailable message or a foreign row gives nil; ReadMessage returns the
// reason.
func (s *Segment) ReadMessages(rows []Row) [][]byte {
	envelopes := make([][]byte, len(rows))
	of := map[uint32][]int{} // indexes into rows, by block
	for i := range rows {
		of[rows[i].block] = append(of[rows[i].block], i)
	}
	blocks := slices.Sorted(maps.Keys(of))
	var next atomic.Int64
	read := func() {
		for n := next.Add(1); n <= int64(len(blocks)); n = next.Add(1) {
			numbers := of[blocks[n-1]]
			f, err := s.frameOf(blocks[n-1], rows[numbers[0]].Size)
			if err != nil {
				continue
			}
			for _, i := range numbers {
				envelopes[i], _ = f.own(&rows[i])
			}
			f.release()
		}
	}
	var wg sync.WaitGroup
	for range min(ahead, len(blocks)) - 1 {
		wg.Go(read)
	}
	read()
	wg.Wait()
	return envelopes
}

// frameOf returns a block's message frame for a message of size bytes, until release. A frame larger than [FrameSize]
// must hold only that message, so that reading a small message never decodes a large frame.
func (s *Segment) frameOf(n uint32, size int64) (*frame, error) {
	if int64(n) >= s.tables[directory].count {
		return nil, damaged("block %d not found", n)
	}
	b, _, err := s.block(int64(n))
	if err != nil {
		return nil, err
	}
	if b.content > FrameSize && b.content != size+1 {
		return nil, damaged("block %d: frame of %d bytes for a message of %d", n, b.content, size)
	}
	return s.frame(int64(n), &b)
}

// Envelopes yields the messages that the segment has whole, in the order of its rows.
func (s *Segment) Envelopes() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for n := range s.tables[directory].count {
			b, err := s.blockRows(n)
			if err != nil {
				if !isDamage(err) {
					yield(nil, err)
					return
				}
				continue
			}
			for _, envelope := range s.ReadMessages(b.rows) {
				if envelope != nil && !yield(envelope, nil) {
					return
				}
			}
		}
	}
}
