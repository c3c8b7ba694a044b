package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/internal/blob"
	"golang.org/x/sync/errgroup"
)

// readers bounds the payloads that one call reads at the same time.
var readers = max(4, 2*runtime.GOMAXPROCS(0))

// MaxBody bounds the payloads of one message, in bytes, also for a streamed body: a message may refer to one payload
// many times.
const MaxBody = 1 << 30

var (
	// ErrTooLarge reports a message above a size limit.
	ErrTooLarge = errors.New("message is too large")
	// ErrMemoryLimit reports that one call would hold more of the store's data in memory than its limit allows.
	ErrMemoryLimit = fmt.Errorf("%w for the memory limit of one call", ErrTooLarge)
)

// noMemory returns the error of a call that needs more bytes than its limit leaves.
func noMemory(need, limit int64) error {
	return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMemoryLimit, need, limit)
}

// HasPayloads reports whether Stored may differ from the body.
func (m *Message) HasPayloads() bool {
	if m.plain {
		return blob.MayEscape(m.Stored)
	}
	return blob.MayRefer(m.Stored)
}

// Payloads lists the message's payloads outside Stored, in order, with size and media type. It opens no blob.
func (m *Message) Payloads() ([]blob.Ref, error) {
	if !m.HasPayloads() {
		return nil, nil
	}
	return blob.Refs(m.Stored)
}

// Body returns the framework's object, verbatim, with every payload in its place. For each unavailable payload the
// error joins a [*blob.UnavailableError], and the body keeps the reference. A body beyond the memory limit of one call
// keeps all its references, and the error wraps [ErrMemoryLimit]; [Message.WriteBody] writes such a body. An
// unavailable message has no body; the error is the reason.
func (m *Message) Body(ctx context.Context) (json.RawMessage, error) {
	return m.resolve(ctx, false, newBudget(m.memory()))
}

// Texts is Body for a caller that only displays a message: references to binary payloads stay, with size and media
// type. Texts only checks that these payloads exist. Do not store the result: a framework may have an object of its own
// that looks like a reference.
func (m *Message) Texts(ctx context.Context) (json.RawMessage, error) {
	return m.resolve(ctx, true, newBudget(m.memory()))
}

// budget is the memory that one call may still use for bodies, in bytes.
type budget struct {
	limit int64
	left  atomic.Int64
}

func newBudget(limit int64) *budget {
	b := &budget{limit: limit}
	b.left.Store(limit)
	return b
}

// take takes n bytes, all or none.
func (b *budget) take(n int64) error {
	for {
		left := b.left.Load()
		if n > left {
			return noMemory(n, b.limit)
		}
		if b.left.CompareAndSwap(left, left-n) {
			return nil
		}
	}
}

// memory returns the memory limit of one call, in bytes.
func (m *Message) memory() int64 {
	if m.from == nil {
		return 0
	}
	return m.from.memory
}

func (m *Message) resolve(ctx context.Context, texts bool, memory *budget) (json.RawMessage, error) {
	body, err := m.reserve(texts, memory)
	if body != nil || err != nil {
		return body, err
	}
	return m.restore(ctx, texts, memory)
}

// reserve takes the memory of a message's body from the budget, as far as its references give the size. It sets body
// where there is nothing to restore, or no memory to restore it.
func (m *Message) reserve(texts bool, memory *budget) (body json.RawMessage, err error) {
	if m.Unavailable != nil {
		return nil, m.Unavailable
	}
	if !m.HasPayloads() {
		return m.Stored, nil
	}
	size, err := blob.BodySize(m.Stored, texts)
	if errors.Is(err, blob.ErrMalformed) {
		return nil, err
	}
	if err := memory.take(size); err != nil {
		body, _ = blob.Resolve(m.Stored, func(blob.Ref) ([]byte, error) { return nil, blob.ErrKeep })
		return body, err
	}
	return nil, nil
}

// restore puts the payloads back into a reserved body. It takes the memory for escapes in texts as it meets them.
func (m *Message) restore(ctx context.Context, texts bool, memory *budget) (json.RawMessage, error) {
	return blob.Resolve(m.Stored, func(ref blob.Ref) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if ref.Encoding != "" {
			if texts {
				return nil, m.there(ref)
			}
			return m.from.payload(ref)
		}
		payload, err := m.from.payload(ref)
		if err == nil {
			err = memory.take(max(ref.StringSize(payload)-int64(len(payload)), 0))
		}
		return payload, err
	})
}

// there returns [blob.ErrKeep] if a payload opens and has its size.
func (m *Message) there(ref blob.Ref) error {
	r, size, err := m.Open(ref)
	if err != nil {
		return err
	}
	_ = r.Close() // only opened for reading
	if size != ref.Size {
		return fmt.Errorf("%w: %d bytes, but the reference states %d", blob.ErrDamaged, size, ref.Size)
	}
	return blob.ErrKeep
}

// WriteBody writes the result of [Message.Body], however large, and holds no payload of more than 1 MiB in memory. It
// reads a larger payload twice: once to verify it, once to write it. A reference stays where its payload is
// unavailable. It also stays, with an error that wraps [ErrTooLarge], where the payload would exceed [MaxBody].
// After an error of w the body is incomplete.
func (m *Message) WriteBody(ctx context.Context, w io.Writer) error {
	if m.Unavailable != nil {
		return m.Unavailable
	}
	if !m.HasPayloads() {
		_, err := w.Write(m.Stored)
		return err
	}
	left, last := int64(MaxBody), -1
	return blob.ResolveTo(w, m.Stored, func(ref blob.Ref) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if ref.Offset != last { // first opening of this payload
			if ref.Size > left {
				return nil, fmt.Errorf("%w: its payloads exceed the limit of %d bytes", ErrTooLarge, int64(MaxBody))
			}
			left, last = left-ref.Size, ref.Offset
		}
		r, _, err := m.Open(ref)
		return r, err
	})
}

// Payload returns one of the message's payloads, verified. The payload is no larger than the reference says or one call
// may hold: [Message.Open] streams a larger one.
func (m *Message) Payload(ref blob.Ref) ([]byte, error) {
	if ref.Size > m.memory() {
		return nil, noMemory(ref.Size, m.memory())
	}
	return m.from.payload(ref)
}

// Open returns one of the message's payloads as a stream, and its size in bytes. The stream verifies its content at the
// end.
func (m *Message) Open(ref blob.Ref) (io.ReadCloser, int64, error) {
	if b := m.from.fromLog(ref); b != nil {
		return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
	}
	r, size, err := m.from.blobs.Open(ref.Sum)
	if err != nil {
		var b []byte
		if b, err = m.from.elsewhere(ref, err); b != nil {
			return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
		}
	}
	return r, size, err
}

// payload looks in the logs, which have the newest payloads, then for a blob. Sealing moves a payload from one to the
// other.
func (l *Loader) payload(ref blob.Ref) ([]byte, error) {
	if b := l.fromLog(ref); b != nil {
		return b, nil
	}
	b, err := l.blobs.Get(ref.Sum, ref.Size)
	if err != nil {
		return l.elsewhere(ref, err)
	}
	return b, nil
}

// Payload returns a payload to which a message refers, verified, without a memory limit.
func (l *Loader) Payload(ref blob.Ref) ([]byte, error) { return l.payload(ref) }

// elsewhere returns a payload that had no usable blob, or the error why. It refreshes the index, since the message may
// be newer than what that knows.
func (l *Loader) elsewhere(ref blob.Ref, why error) (b []byte, err error) {
	closed := l.whileOpen(func() {
		if l.index.Refresh() == nil {
			b = l.inLog(ref)
		}
	})
	switch {
	case b != nil:
		return b, nil
	case closed != nil:
		return nil, fmt.Errorf("%w: %w", closed, why)
	}
	// It may have been sealed meanwhile.
	if again, aerr := l.blobs.Get(ref.Sum, ref.Size); aerr == nil {
		return again, nil
	}
	return nil, why
}

// fromLog returns a payload from a log, nil without an undamaged one.
func (l *Loader) fromLog(ref blob.Ref) (b []byte) {
	_ = l.whileOpen(func() { b = l.inLog(ref) })
	return b
}

// whileOpen calls f, which reads logs, unless the loader is closed.
func (l *Loader) whileOpen(f func()) error {
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed {
		return ErrClosed
	}
	f()
	return nil
}

// inLog is fromLog for a caller that keeps the index open.
func (l *Loader) inLog(ref blob.Ref) []byte {
	if b, ok, err := l.index.Payload(ref.Sum); ok && err == nil && blob.SumOf(b) == ref.Sum {
		return b
	}
	return nil
}

// Bodies returns the bodies of messages, read concurrently. Each entry is the result of [Message.Body]; the error joins
// theirs. All bodies share the memory of one call, in order: a body that no longer fits keeps its references.
func Bodies(ctx context.Context, messages []*Message) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(messages))
	errs := make([]error, len(messages))
	if len(messages) == 0 {
		return out, nil
	}
	memory := newBudget(messages[0].memory())
	var waiting []int
	for i, m := range messages {
		if out[i], errs[i] = m.reserve(false, memory); out[i] == nil && errs[i] == nil {
			waiting = append(waiting, i)
		}
	}
	var group errgroup.Group
	var next atomic.Int64
	for range min(readers, len(waiting)) {
		group.Go(func() error {
			for n := next.Add(1); n <= int64(len(waiting)); n = next.Add(1) {
				i := waiting[n-1]
				out[i], errs[i] = messages[i].restore(ctx, false, memory)
			}
			return nil
		})
	}
	_ = group.Wait()
	return out, errors.Join(errs...)
}

// Resolve puts the payloads back into a value with references, within the memory of one call.
func (l *Loader) Resolve(ctx context.Context, stored json.RawMessage) (json.RawMessage, error) {
	m := Message{Stored: stored, from: l}
	return m.Body(ctx)
}
