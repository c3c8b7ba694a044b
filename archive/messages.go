package archive

import (
	"bytes"
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
	Envelope []byte // as it was added, without a newline; not to be changed
}

// ahead is how many frames are decoded at once, at most.
var ahead = min(runtime.GOMAXPROCS(0), 4)

// ReadMessage returns the envelope of a message that this pack gave the row of, without a newline, verified. Of the row Line, Position, Size, Sum and
// Place count. One frame is decoded for it, or none, when it is one of the last two. The error wraps [ErrDamaged]. The caller owns the slice.
func (p *Pack) ReadMessage(r Row) ([]byte, error) {
	content, err := p.contentOf(r.segment, r.Size)
	if err != nil {
		return nil, p.wrap(err)
	}
	b, err := own(&r, content)
	if err != nil {
		return nil, p.wrap(err)
	}
	return b, nil
}

// ReadMessages returns the envelopes of messages that this pack gave the rows of, as [Pack.ReadMessage] does, in the order of the rows. Each frame is
// decoded once, some at a time. The envelope is nil of a message that cannot be had and of a row that is not this pack's; ReadMessage tells why.
func (p *Pack) ReadMessages(rows []Row) [][]byte {
	envelopes := make([][]byte, len(rows))
	of := map[uint32][]int{} // the numbers of the rows of a segment
	for i := range rows {
		of[rows[i].segment] = append(of[rows[i].segment], i)
	}
	segments := slices.Sorted(maps.Keys(of))
	var next atomic.Int64
	read := func() {
		for n := next.Add(1); n <= int64(len(segments)); n = next.Add(1) {
			numbers := of[segments[n-1]]
			content, err := p.contentOf(segments[n-1], rows[numbers[0]].Size)
			if err != nil {
				continue
			}
			for _, i := range numbers {
				envelopes[i], _ = own(&rows[i], content)
			}
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

// contentOf returns what the message frame of a segment holds that has a message of so many bytes. A frame that is larger than [FrameSize]
// holds nothing else: its size must not decide how much is decoded for a small message.
func (p *Pack) contentOf(n uint32, size int64) ([]byte, error) {
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
	return p.content(int64(n), &s)
}

// own returns the envelope of a row from its frame, in memory of its own: a message that is kept must not keep its frame, unless it fills it.
func own(r *Row, content []byte) ([]byte, error) {
	b, err := envelope(r, content)
	if len(content) <= FrameSize {
		b = bytes.Clone(b)
	}
	return b, err
}

// envelope returns the envelope of a row from its frame.
func envelope(r *Row, content []byte) ([]byte, error) {
	from, to := int64(r.offset), int64(r.offset)+r.Size
	if r.Size < 0 || to >= int64(len(content)) || content[to] != '\n' || message.Sum(content[from:to]) != r.Sum {
		return nil, damaged("position %d of line %s is not what was written", r.Position, r.Line)
	}
	return content[from:to:to], nil
}
