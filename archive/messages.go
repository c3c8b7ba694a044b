package archive

import (
	"bytes"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
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
	content, err := p.contentOf(r.segment)
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
			content, err := p.contentOf(segments[n-1])
			if err != nil {
				continue
			}
			for _, i := range of[segments[n-1]] {
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

// contentOf returns what the message frame of a segment holds that a row names.
func (p *Pack) contentOf(n uint32) ([]byte, error) {
	if int64(n) >= p.foot.segments {
		return nil, damaged("no segment %d", n)
	}
	s, _, err := p.segment(int64(n))
	if err != nil {
		return nil, err
	}
	return p.content(int64(n), &s)
}

// own returns the envelope of a row from its frame, in memory of its own: a message kept is not to keep its frame, unless it fills it.
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

// frame is a segment with its content, or why it cannot be had.
type frame struct {
	rows    *segmentRows
	content []byte
	err     error
}

func (p *Pack) frame(n int64) (f frame) {
	if f.rows, f.err = p.segmentRows(n); f.err != nil {
		return f
	}
	f.content, f.err = p.content(n, &f.rows.segment)
	return f
}

// Messages yields the messages of the positions [from, to) of a line that are in the pack, in order, each frame decoded once; from the
// second on, some at a time. Where a message cannot be had its Envelope is nil and the error wraps [ErrDamaged]; the rest
// follows. Where a segment's rows are damaged as well, the error comes once, with an empty Row. Envelopes share their frame's memory: who keeps one of
// many keeps its frame.
func (p *Pack) Messages(line uuid.UUID, from, to int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if from >= to {
			return
		}
		n, err := p.findPosition(line, from)
		end := int64(0)
		if err == nil {
			end, err = p.findPosition(line, to-1)
		}
		if err != nil {
			yield(Message{}, p.wrap(err))
			return
		}
		for f := range p.decoded(max(n, 0), end+1) {
			if f.rows == nil {
				if !yield(Message{}, p.wrap(f.err)) {
					return
				}
				continue
			}
			for i := f.rows.search(line, from); i < len(f.rows.rows) && f.rows.rows[i].compare(line, to) < 0; i++ {
				m := Message{Row: f.rows.rows[i]}
				err := f.err
				if err == nil {
					m.Envelope, err = envelope(&m.Row, f.content)
				}
				if err != nil {
					err = p.wrap(err)
				}
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// decoded yields the frames [n, end). The first is decoded by the caller: to start another one costs as much as some messages.
func (p *Pack) decoded(n, end int64) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		if n >= end || !yield(p.frame(n)) {
			return
		}
		var under []chan frame // in order
		defer func() {
			for _, c := range under {
				<-c // nothing is left running when the iterator returns
			}
		}()
		next := n + 1
		for next < end || len(under) > 0 {
			for next < end && len(under) < ahead {
				c, k := make(chan frame, 1), next
				go func() { c <- p.frame(k) }()
				under = append(under, c)
				next++
			}
			f := <-under[0]
			under = under[1:]
			if !yield(f) {
				return
			}
		}
	}
}
