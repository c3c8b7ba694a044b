package replica

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Digests implements [Peer].
//
// The sum up to a message is the SHA-256 of that up to the message before, the id, and the SHA-256 of what travels of the
// message, or zeros if it is erased. The sum of a context is the SHA-256 of its branches, ordered by name: the name, a zero
// byte, the number of messages in 8 bytes, and the sum up to the last message.
func (f *Folder) Digests(ctx context.Context, of []uuid.UUID) ([]Digest, error) {
	all := make([]Digest, len(of))
	for i, id := range of {
		all[i].Err = f.s.Use(ctx, id, func(c *ctxdir.Context) error { return digest(ctx, c, &all[i]) })
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func digest(ctx context.Context, c *ctxdir.Context, into *Digest) error {
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	s := c.Summary()
	if s.Problem != nil {
		return s.Problem
	}
	into.Sequence = s.Sequence
	all, err := branches(ctx, c)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b Branch) int { return strings.Compare(a.Name, b.Name) })
	d := digester{c: c, sums: map[ctxdir.Span][sha256.Size]byte{}, payloads: map[string]bool{}}
	if err := d.lines(ctx, all); err != nil {
		return err
	}
	sum := sha256.New()
	for i := range all {
		b := &all[i]
		_, _ = io.WriteString(sum, b.Name+"\x00")
		_ = binary.Write(sum, binary.LittleEndian, b.Len())
		if n := len(b.Lines); n > 0 {
			last := d.sums[b.Lines[n-1]]
			_, _ = sum.Write(last[:])
		}
	}
	into.Messages = d.messages
	sum.Sum(into.Sum[:0])
	return nil
}

// digester reads each message of a context once, whatever number of branches show it.
type digester struct {
	c        *ctxdir.Context
	sums     map[ctxdir.Span][sha256.Size]byte // of messages, by the line and the position after them
	payloads map[string]bool                   // those that were read
	messages int64
}

// lines computes the sums at which branches end, or fork: those of a line need those of the lines before it.
func (d *digester) lines(ctx context.Context, all []Branch) error {
	for depth, more := 0, true; more; depth++ {
		more = false
		ends := map[uuid.UUID][]int64{}
		from := map[uuid.UUID]ctxdir.Span{}
		for i := range all {
			spans := all[i].Lines
			if depth >= len(spans) {
				continue
			}
			more = true
			line := spans[depth].Line
			ends[line] = append(ends[line], spans[depth].End)
			if depth > 0 {
				from[line] = spans[depth-1]
			}
		}
		for line, to := range ends {
			if err := d.line(ctx, line, from[line], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// line reads the messages that a line owns, from where it forks.
func (d *digester) line(ctx context.Context, line uuid.UUID, after ctxdir.Span, ends []int64) error {
	b, err := d.c.Branch(line.String())
	if err != nil {
		return err
	}
	sum, at := d.sums[after], after.End
	slices.Sort(ends)
	for _, end := range slices.Compact(ends) {
		for m, err := range b.Messages(ctx, at, end) {
			if err != nil {
				return err
			}
			if m.Position != at {
				return fmt.Errorf("%w: %d messages from position %d on are lost", ctxdir.ErrDamaged, m.Position-at, at)
			}
			if sum, err = d.message(ctx, sum, m); err != nil {
				return err
			}
			at++
		}
		if at < end {
			return fmt.Errorf("%w: %d messages from position %d on are lost", ctxdir.ErrDamaged, end-at, at)
		}
		d.sums[ctxdir.Span{Line: line, End: end}] = sum
	}
	return nil
}

func (d *digester) message(ctx context.Context, before [sha256.Size]byte, m *ctxdir.Message) (sum [sha256.Size]byte, err error) {
	switch {
	case m.Unavailable == nil:
		if err := d.read(ctx, m); err != nil {
			return sum, err
		}
		sum = sumOf(m)
	case !errors.Is(m.Unavailable, ctxdir.ErrErased):
		return sum, m.Unavailable
	}
	d.messages++
	return sha256.Sum256(slices.Concat(before[:], m.ID[:], sum[:])), nil
}

// sumOf is the SHA-256 of what of a message travels, without its place: texts and values with their lengths before them.
func sumOf(m *ctxdir.Message) (sum [sha256.Size]byte) {
	h := sha256.New()
	e := newEncoder(h)
	e.text(m.Role)
	e.text(m.Type)
	e.time(m.CreatedAt)
	e.time(m.StoredAt)
	e.text(m.OriginID)
	e.bytes(m.Source)
	e.bytes(m.References)
	e.bytes(m.Stored)
	_ = e.flush() // a hash takes all
	h.Sum(sum[:0])
	return sum
}

// read reads the payloads of a message that were not read yet.
func (d *digester) read(ctx context.Context, m *ctxdir.Message) error {
	all, err := m.Payloads()
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Problem != "" || d.payloads[p.SHA256] {
			continue
		}
		d.payloads[p.SHA256] = true
		if err := sameSum(ctx, m, p); err != nil {
			return fmt.Errorf("payload %s of message %s: %w", p.SHA256, m.ID, err)
		}
	}
	return nil
}

func sameSum(ctx context.Context, m *ctxdir.Message, p ctxdir.Payload) error {
	r, _, err := m.Open(p)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
		err = fmt.Errorf("%w: its content is another one", ctxdir.ErrDamaged)
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
