package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/ctxdir/ctxdir/blob"
	"github.com/ctxdir/ctxdir/index"
	"golang.org/x/sync/errgroup"
)

// Blobs is where payloads are that no journal has any more.
type Blobs interface {
	Get(sum blob.Sum, limit int64) ([]byte, error)
	Open(sum blob.Sum) (payload io.ReadCloser, size int64, err error)
}

// MaxBody bounds the payloads of one message, in bytes, also where its body is streamed: the same one may be referred to many times.
const MaxBody = 1 << 30

// ErrMemoryLimit: one call would hold more of the store's data in memory than its limit allows.
var ErrMemoryLimit = fmt.Errorf("%w for the memory that one call may take", index.ErrTooLarge)

// noMemory is the error of a call that needs more bytes than are left of its limit.
func noMemory(need, limit int64) error {
	return fmt.Errorf("%w: %d bytes, and the limit is %d", ErrMemoryLimit, need, limit)
}

// HasPayloads reports whether Stored may differ from the body: a reference, and a name that was escaped because it looks
// like one, has a dollar sign.
func (m *Message) HasPayloads() bool {
	return bytes.IndexByte(m.Stored, '$') >= 0 || bytes.Contains(m.Stored, []byte(`\u0024`))
}

// Payloads lists the payloads that were moved out of the message, in order, with size and media type. It opens no blob.
func (m *Message) Payloads() ([]blob.Ref, error) {
	if !m.HasPayloads() {
		return nil, nil
	}
	return blob.Refs(m.Stored)
}

// Body returns the framework's object, verbatim: with every payload back in its place. Where a payload is unavailable, the error
// joins a [*blob.UnavailableError] for each, and the body comes with references in their places all the same. A body that takes more memory than
// one call may use comes with all its references, and an error that wraps [ErrMemoryLimit]; [Message.WriteBody] writes it.
// A message that is unavailable has no body; the error is why.
func (m *Message) Body(ctx context.Context) (json.RawMessage, error) {
	return m.resolve(ctx, false, newBudget(m.memory()))
}

// Texts is Body for a caller that only shows a message: references to binary payloads stay, which tell size and media type. Of these
// payloads nothing is read but that they are there. The result is not to be stored: a framework may have an object of its
// own that looks like a reference.
func (m *Message) Texts(ctx context.Context) (json.RawMessage, error) {
	return m.resolve(ctx, true, newBudget(m.memory()))
}

// budget is the memory that one call may still take for bodies, in bytes.
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

// memory is what one call may take, in bytes.
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

// reserve takes the memory of a message's body, as far as its references tell. body is set where nothing is to be restored, or must not be.
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

// restore puts payloads back into a message whose body was reserved. What escapes add to a text is taken now.
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

// there returns [blob.ErrKeep] where a payload can be opened, and has its size.
func (m *Message) there(ref blob.Ref) error {
	r, size, err := m.Open(ref)
	if err != nil {
		return err
	}
	_ = r.Close() // nothing was written
	if size != ref.Size {
		return fmt.Errorf("%w: %d bytes, the reference says %d", blob.ErrDamaged, size, ref.Size)
	}
	return blob.ErrKeep
}

// WriteBody writes what [Message.Body] returns, however large, and holds no payload of more than 1 MiB in memory: larger ones are read twice,
// first to prove them and then to write them. A reference stays where its payload is unavailable, and, with an error that wraps
// [index.ErrTooLarge], where the payloads before it leave no room for it in [MaxBody]. After an error of w the body is not complete.
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
		if ref.Offset != last { // it is opened for the first time
			if ref.Size > left {
				return nil, fmt.Errorf("%w: its payloads are larger than %d bytes", index.ErrTooLarge, int64(MaxBody))
			}
			left, last = left-ref.Size, ref.Offset
		}
		r, _, err := m.Open(ref)
		return r, err
	})
}

// Payload returns one of the message's payloads, verified. It is no larger than the reference says, nor than one call may take: [Message.Open] streams
// a larger one.
func (m *Message) Payload(ref blob.Ref) ([]byte, error) {
	if ref.Size > m.memory() {
		return nil, noMemory(ref.Size, m.memory())
	}
	return m.from.payload(ref)
}

// Open returns one of the message's payloads as a stream, and its size in bytes. What is read is verified at its end.
func (m *Message) Open(ref blob.Ref) (io.ReadCloser, int64, error) {
	if b := m.from.riding(ref, false); b != nil {
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

// payload looks in the journals that are in memory, where the newest ones are; then for a blob; and where that is missing or
// damaged in the folded journals, which have to be searched, and in packs.
func (l *Loader) payload(ref blob.Ref) ([]byte, error) {
	if b := l.riding(ref, false); b != nil {
		return b, nil
	}
	b, err := l.blobs.Get(ref.Sum, ref.Size)
	if err != nil {
		there, why := l.elsewhere(ref, err)
		if there != nil {
			return there, nil
		}
		// It may have moved from one place to another while they were looked at.
		if again, aerr := l.blobs.Get(ref.Sum, ref.Size); aerr == nil {
			return again, nil
		}
		err = why
	}
	return b, err
}

// elsewhere returns a payload of which there is no blob, for the reason why, or that reason. A message file may be newer than what is known of the journals.
func (l *Loader) elsewhere(ref blob.Ref, why error) (b []byte, err error) {
	closed := l.whileOpen(func() {
		if b = l.inJournals(ref, true); b == nil && l.log.Refresh() == nil {
			b = l.inJournals(ref, true)
		}
	})
	if closed != nil {
		why = fmt.Errorf("%w: %w", closed, why)
	}
	return b, why
}

// riding returns a payload from a journal, nil where none has it unharmed.
func (l *Loader) riding(ref blob.Ref, folded bool) (b []byte) {
	_ = l.whileOpen(func() { b = l.inJournals(ref, folded) })
	return b
}

// whileOpen calls f, which looks into the log, unless that may be closed.
func (l *Loader) whileOpen(f func()) error {
	l.open.RLock()
	defer l.open.RUnlock()
	if l.closed {
		return ErrClosed
	}
	f()
	return nil
}

// inJournals is riding for who keeps the log open.
func (l *Loader) inJournals(ref blob.Ref, folded bool) []byte {
	if b, err := l.log.Payload(ref.Sum, folded); err == nil && b != nil && blob.SumOf(b) == ref.Sum {
		return b
	}
	return nil
}

// Bodies returns the bodies of messages, read side by side. An entry is what [Message.Body] returns; the error joins
// theirs. All bodies share the memory of one call, in order: one that does not fit any more comes as it is stored.
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

// Resolve puts the payloads back into what refers to them as a message does, within the memory of one call.
func (l *Loader) Resolve(ctx context.Context, stored json.RawMessage) (json.RawMessage, error) {
	m := Message{Stored: stored, from: l}
	return m.Body(ctx)
}
