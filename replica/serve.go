package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Limits bound what one session of a peer may store here: a connection of a pipe, or a request over HTTP.
type Limits struct {
	Bytes    int64 // that the peer may send; 0 for 16 GiB
	ReadOnly bool  // refuse every change
	Full     bool  // likewise, since the store may not grow
}

// Serve answers one call of a [Client].
func Serve(ctx context.Context, f *Folder, l Limits, request io.Reader, answer io.Writer) error {
	limited := l.reader()
	limited.R = request
	return serveSome(ctx, f, l, limited, answer)
}

// reader returns a reader of as many bytes as a session may send.
func (l *Limits) reader() *io.LimitedReader {
	if l.Bytes == 0 {
		l.Bytes = 16 << 30
	}
	return &io.LimitedReader{N: l.Bytes}
}

// serveSome answers a call within a session.
func serveSome(ctx context.Context, f *Folder, l Limits, limited *io.LimitedReader, answer io.Writer) error {
	d, e := newDecoder(limited), newEncoder(answer)
	var op [1]byte
	d.full(op[:])
	err := d.err
	if err == nil {
		err = serve(ctx, f, l, call(op[0]), d, e)
	}
	if limited.N == 0 {
		err = errors.Join(err, fmt.Errorf("%w: the peer sent more than %d bytes", ctxdir.ErrTooLarge, l.Bytes))
	}
	if err != nil {
		e.error(err) // only before the answer begins: see serve
	}
	return e.flush()
}

// serve answers a call. It returns an error only if it has written nothing.
func serve(ctx context.Context, f *Folder, l Limits, op call, d *decoder, e *encoder) error {
	switch op {
	case callContexts:
		return serveContexts(ctx, f, d, e)
	case callRemoved:
		ids := list(d, d.id)
		return answer(d, e, func() ([]bool, error) { return f.removed(ctx, ids) }, e.booleans)
	case callHeads:
		of := list(d, d.headRequest)
		return answer(d, e, func() ([]Head, error) { return f.Heads(ctx, of) }, func(h []Head) { encodeList(e, h, e.head) })
	case callRows:
		of := list(d, d.ranges)
		return answer(d, e, func() ([][]Row, error) { return f.Rows(ctx, of) }, func(r [][]Row) {
			encodeList(e, r, func(rows *[]Row) { e.rows(*rows) })
		})
	case callRead:
		size := d.number()
		of := list(d, d.ranges)
		return answer(d, e, func() ([]Message, error) { return f.Read(ctx, of, int64(min(size, chunk))) }, func(m []Message) {
			encodeList(e, m, e.message)
		})
	case callHave:
		sums := list(d, d.payloadSum)
		return answer(d, e, func() ([]bool, error) { return f.Have(ctx, sums) }, e.booleans)
	case callGet:
		return serveGet(ctx, f, d, e)
	case callDigests:
		of := list(d, d.id)
		return answer(d, e, func() ([]Digest, error) { return f.Digests(ctx, of) }, func(all []Digest) {
			encodeList(e, all, e.digest)
		})
	case callApply:
		if l.Full {
			return fmt.Errorf("%w: the quota of the peer is used up", ctxdir.ErrTooLarge)
		}
		if l.ReadOnly {
			return ctxdir.ErrReadOnly
		}
		return serveApply(ctx, f, d, e)
	}
	return fmt.Errorf("%w: %w: call %d", errProtocol, ctxdir.ErrInvalid, op)
}

// answer makes a call and writes its result.
func answer[T any](d *decoder, e *encoder, do func() (T, error), write func(T)) error {
	if d.err != nil {
		return d.err
	}
	x, err := do()
	if err != nil {
		return err
	}
	e.error(nil)
	write(x)
	return nil
}

func serveContexts(ctx context.Context, f *Folder, d *decoder, e *encoder) error {
	sums := list(d, d.sum)
	parts := len(sums)
	if parts&(parts-1) != 0 || parts > 1<<16 {
		d.invalid("%d parts", parts)
	}
	return answer(d, e, func() ([]State, error) {
		if parts == 0 {
			return nil, nil
		}
		return f.Contexts(ctx, nil)
	}, func(all []State) {
		id, _ := f.Store(ctx)
		e.id(id)
		is := make(map[uuid.UUID]string, len(all))
		for _, s := range all {
			is[s.ID] = s.Commit
		}
		var differ []uint64
		var states []State
		if parts > 0 {
			differs := make([]bool, parts)
			for i, sum := range partSums(is, parts) {
				if differs[i] = sum != sums[i]; differs[i] {
					differ = append(differ, uint64(i))
				}
			}
			states = slices.DeleteFunc(all, func(s State) bool { return !differs[partOf(s.ID, parts)] })
		}
		encodeList(e, differ, func(n *uint64) { e.number(*n) })
		encodeList(e, states, e.state)
	})
}

// serveGet sends payloads. One that ends early ends the answer: the client finds it cut.
func serveGet(ctx context.Context, f *Folder, d *decoder, e *encoder) error {
	of := list(d, d.payloadOf)
	if d.err != nil {
		return d.err
	}
	e.error(nil)
	err := f.Get(ctx, of, e.payload)
	if err == nil {
		e.flags(false)
	}
	e.err = firstOf(e.err, err)
	return nil
}

func serveApply(ctx context.Context, f *Folder, d *decoder, e *encoder) error {
	s := &spool{}
	defer s.close() //nolint:errcheck // a leftover of temporary files
	d.payloads(s.put)
	changes := list(d, d.change)
	return answer(d, e, func() ([]Result, error) { return f.Apply(ctx, changes, s.open) }, func(r []Result) {
		encodeList(e, r, e.result)
	})
}
