package archive

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/message"
)

// Message is a row with its envelope.
type Message struct {
	Row
	Envelope []byte // without a newline; read-only
}

// ahead is the most frames that are decoded at once.
var ahead = min(runtime.GOMAXPROCS(0), 4)

// ReadMessage returns the verified envelope of a row from this pack, without a newline. It uses the row's Line,
// Position, Size, Sum and Place. It decodes at most one frame. The error wraps [ErrDamaged]. The caller owns the slice.
func (p *Pack) ReadMessage(r Row) ([]byte, error) {
	f, err := p.frameOf(r.segment, r.Size)
	if err != nil {
		return nil, p.wrap(err)
	}
	defer f.release()
	b, err := f.own(&r)
	if err != nil {
		return nil, p.wrap(err)
	}
	return b, nil
}

// ReadMessages returns the envelopes of rows from this pack, as [Pack.ReadMessage] does, in their order. It decodes
// each frame once, several at a time. An unavailable message or a foreign row gives nil; ReadMessage returns the
// reason.
func (p *Pack) ReadMessages(rows []Row) [][]byte {
	envelopes := make([][]byte, len(rows))
	of := map[uint32][]int{} // indexes into rows, by segment
	for i := range rows {
		of[rows[i].segment] = append(of[rows[i].segment], i)
	}
	segments := slices.Sorted(maps.Keys(of))
	var next atomic.Int64
	read := func() {
		for n := next.Add(1); n <= int64(len(segments)); n = next.Add(1) {
			numbers := of[segments[n-1]]
			f, err := p.frameOf(segments[n-1], rows[numbers[0]].Size)
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
	for range min(ahead, len(segments)) - 1 {
		wg.Go(read)
	}
	read()
	wg.Wait()
	return envelopes
}

// frameOf returns a segment's message frame for a message of size bytes, until release. A frame larger than [FrameSize]
// must hold only that message, so that reading a small message never decodes a large frame.
func (p *Pack) frameOf(n uint32, size int64) (*frame, error) {
	if int64(n) >= p.foot.segments {
		return nil, damaged("no segment %d", n)
	}
	s, _, err := p.segment(int64(n))
	if err != nil {
		return nil, err
	}
	if s.content > FrameSize && s.content != size+1 {
		return nil, damaged("segment %d: frame of %d bytes for a message of %d", n, s.content, size)
	}
	return p.frame(int64(n), &s)
}

// envelope returns a row's envelope from its frame.
func envelope(r *Row, content []byte) ([]byte, error) {
	from, to := int64(r.offset), int64(r.offset)+r.Size
	if r.Size < 0 || to >= int64(len(content)) || content[to] != '\n' || message.Sum(content[from:to]) != r.Sum {
		return nil, damaged("position %d of line %s differs from what was written", r.Position, r.Line)
	}
	return content[from:to:to], nil
}
