package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
)

// call is a method of [Peer], by its number in the protocol.
type call byte

const (
	callContexts call = iota + 1
	callRemoved
	callHeads
	callRows
	callRead
	callHave
	callGet
	callApply
	callDigests
)

// Caller carries a request to another machine, and returns the answer. It is one round trip.
type Caller interface {
	Call(ctx context.Context, request io.Reader) (answer io.ReadCloser, err error)
}

// Client is a peer elsewhere. It counts what it costs.
type Client struct {
	c     Caller
	store uuid.UUID // uuid.Nil until the peer has said it
	Trips int64     // round trips
	Bytes int64     // sent and received, without what the connection adds
}

// NewClient returns the peer that a Caller leads to. store is the id that it had before, or uuid.Nil: knowing it saves a
// round trip.
func NewClient(c Caller, store uuid.UUID) *Client { return &Client{c: c, store: store} }

// do makes a call: write writes what it asks for, and read reads the answer.
func (c *Client) do(ctx context.Context, op call, write func(*encoder), read func(*decoder)) error {
	r, w := io.Pipe()
	count := &counter{}
	go func() {
		e := newEncoder(io.MultiWriter(w, count))
		e.write([]byte{byte(op)})
		if write != nil {
			write(e)
		}
		_ = w.CloseWithError(e.flush())
	}()
	answer, err := c.c.Call(ctx, r)
	_ = r.Close() // the peer may not have read all of it
	c.Trips++
	if err != nil {
		return err
	}
	d := newDecoder(io.TeeReader(answer, count))
	err = d.error()
	if err == nil && d.err == nil && read != nil {
		read(d)
	}
	err = errors.Join(err, d.err)
	_ = answer.Close()
	c.Bytes += count.n
	return err
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// Store implements [Peer].
func (c *Client) Store(ctx context.Context) (uuid.UUID, error) {
	if c.store == uuid.Nil {
		err := c.do(ctx, callContexts, func(e *encoder) { encodeList[uint64](e, nil, nil) }, func(d *decoder) { c.store = d.id() })
		if err != nil {
			return uuid.Nil, err
		}
	}
	return c.store, nil
}

// ErrOtherStore: the peer is another store than before.
var ErrOtherStore = errors.New("the peer is another store than before")

// Contexts implements [Peer]. It sends a checksum for each part of what is known, and gets the states of the parts that
// differ.
func (c *Client) Contexts(ctx context.Context, known map[uuid.UUID]string) ([]State, error) {
	parts := partsOf(len(known))
	sums := partSums(known, parts)
	var got []State
	var store uuid.UUID
	differs := make([]bool, parts)
	err := c.do(ctx, callContexts, func(e *encoder) {
		encodeList(e, sums, func(n *uint64) { e.sum(*n) })
	}, func(d *decoder) {
		store = d.id()
		for _, i := range list(d, d.number) {
			if i < uint64(parts) {
				differs[i] = true
			}
		}
		got = list(d, d.state)
	})
	if err == nil && c.store != uuid.Nil && store != c.store {
		err = ErrOtherStore
	}
	if err != nil {
		return nil, err
	}
	there := map[uuid.UUID]bool{}
	var changed []State
	for _, s := range got {
		there[s.ID] = true
		if was, ok := known[s.ID]; !ok || was != s.Commit || s.Commit == "" {
			changed = append(changed, s)
		}
	}
	var missing []uuid.UUID
	for id := range known {
		if differs[partOf(id, parts)] && !there[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return changed, nil
	}
	slices.SortFunc(missing, compareIDs)
	var removed []bool
	err = c.do(ctx, callRemoved, func(e *encoder) {
		encodeList(e, missing, func(id *uuid.UUID) { e.id(*id) })
	}, func(d *decoder) {
		removed = d.booleans(len(missing))
	})
	for i, id := range missing {
		changed = append(changed, State{ID: id, Removed: i < len(removed) && removed[i]})
	}
	return changed, err
}

func (d *decoder) booleans(n int) []bool {
	all := list(d, func() (b bool) {
		d.flags(&b)
		return b
	})
	if len(all) != n {
		d.invalid("%d answers, not %d", len(all), n)
	}
	return all
}

func (e *encoder) booleans(all []bool) { encodeList(e, all, func(b *bool) { e.flags(*b) }) }

// partsOf returns into how many parts a list of n contexts is split: a power of two.
func partsOf(n int) int {
	parts := 1
	for parts*16 < n && parts < 1<<16 {
		parts *= 2
	}
	return parts
}

// partOf returns the part of a context. Ids that are made one after the other differ at their ends.
func partOf(id uuid.UUID, parts int) int {
	return int(xxhash.Sum64(id[:]) & uint64(parts-1)) //nolint:gosec // below parts
}

// partSums returns a checksum of the states of each part.
func partSums(known map[uuid.UUID]string, parts int) []uint64 {
	of := make([][]uuid.UUID, parts)
	for _, id := range slices.SortedFunc(maps.Keys(known), compareIDs) {
		i := partOf(id, parts)
		of[i] = append(of[i], id)
	}
	sums := make([]uint64, parts)
	for i := range of {
		h := xxhash.New()
		for _, id := range of[i] {
			_, _ = h.Write(id[:])
			_, _ = h.WriteString(known[id])
			_, _ = h.Write([]byte{0})
		}
		sums[i] = h.Sum64()
	}
	return sums
}

// Heads implements [Peer].
func (c *Client) Heads(ctx context.Context, of []HeadRequest) (heads []Head, err error) {
	err = c.do(ctx, callHeads, func(e *encoder) { encodeList(e, of, e.headRequest) }, func(d *decoder) { heads = list(d, d.head) })
	return heads, err
}

// Rows implements [Peer].
func (c *Client) Rows(ctx context.Context, of []Range) (rows [][]Row, err error) {
	err = c.do(ctx, callRows, func(e *encoder) { encodeList(e, of, e.ranges) }, func(d *decoder) { rows = list(d, d.rows) })
	return rows, err
}

// Read implements [Peer].
func (c *Client) Read(ctx context.Context, of []Range, size int64) (all []Message, err error) {
	err = c.do(ctx, callRead, func(e *encoder) {
		e.number(uint64(max(size, 0)))
		encodeList(e, of, e.ranges)
	}, func(d *decoder) {
		all = list(d, d.message)
	})
	return all, err
}

// Have implements [Peer].
func (c *Client) Have(ctx context.Context, sums []string) (have []bool, err error) {
	err = c.do(ctx, callHave, func(e *encoder) {
		encodeList(e, sums, func(s *string) { e.text(*s) })
	}, func(d *decoder) {
		have = d.booleans(len(sums))
	})
	return have, err
}

// Get implements [Peer].
func (c *Client) Get(ctx context.Context, of []PayloadOf, f func(sum string, size int64, r io.Reader) error) error {
	wanted := map[string]bool{}
	for _, p := range of {
		wanted[p.Sum] = true
	}
	return c.do(ctx, callGet, func(e *encoder) { encodeList(e, of, e.payloadOf) }, func(d *decoder) {
		d.payloads(func(sum string, size int64, r io.Reader) error {
			if !wanted[sum] {
				return fmt.Errorf("%w: payload %s was not asked for", errProtocol, sum)
			}
			delete(wanted, sum)
			return f(sum, size, r)
		})
	})
}

// payload writes a payload, after a byte that says that there is one.
func (e *encoder) payload(sum string, size int64, r io.Reader) error {
	e.flags(true)
	e.text(sum)
	e.number(uint64(size))
	if e.err == nil {
		_, e.err = io.CopyN(e.w, r, size)
	}
	return e.err
}

// payloads calls f with each payload.
func (d *decoder) payloads(f func(sum string, size int64, r io.Reader) error) {
	for d.err == nil {
		var more bool
		if d.flags(&more); !more {
			return
		}
		sum, size := d.payloadSum(), int64(d.number())
		if d.err != nil {
			return
		}
		if size < 0 {
			d.invalid("a payload of %d bytes", size)
			return
		}
		r := io.LimitReader(d.r, size)
		if err := f(sum, size, r); err != nil {
			d.fail(err)
			return
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			d.fail(err)
		}
	}
}

// Apply implements [Peer]. It sends the payloads that payload returns along: ask Have before.
func (c *Client) Apply(
	ctx context.Context, changes []Change, payload func(sum string) (io.ReadCloser, int64, error),
) (results []Result, err error) {
	var sums []string
	for i := range changes {
		for _, op := range changes[i].Ops {
			for _, m := range op.Messages {
				sums = append(sums, m.Payloads...)
			}
		}
	}
	slices.Sort(sums)
	err = c.do(ctx, callApply, func(e *encoder) {
		for _, sum := range slices.Compact(sums) {
			if e.err = firstOf(e.err, sendPayload(e, sum, payload)); e.err != nil {
				return
			}
		}
		e.flags(false)
		encodeList(e, changes, e.change)
	}, func(d *decoder) {
		results = list(d, d.result)
	})
	return results, err
}

// Digests implements [Peer].
func (c *Client) Digests(ctx context.Context, of []uuid.UUID) (all []Digest, err error) {
	err = c.do(ctx, callDigests, func(e *encoder) {
		encodeList(e, of, func(id *uuid.UUID) { e.id(*id) })
	}, func(d *decoder) {
		if all = list(d, d.digest); len(all) != len(of) {
			d.invalid("%d answers, not %d", len(all), len(of))
		}
	})
	return all, err
}

func sendPayload(e *encoder, sum string, payload func(sum string) (io.ReadCloser, int64, error)) error {
	r, size, err := payload(sum)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(e.payload(sum, size, r), r.Close())
}
